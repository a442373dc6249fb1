#include "io/safetensors_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>

#include "io/model_files.h"

namespace skein {
namespace {

class SafetensorsWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::temp_directory_path() /
           ("skein_writer_" + std::to_string(getpid()) +
            ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(dir_);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  // Fills the bytes of tensor i with i + position. Writes each tensor in two pieces, the last piece
  // first.
  size_t WriteAll(int64_t max_shard_bytes) {
    Result<SafetensorsWriter> writer =
        SafetensorsWriter::Create(dir_.string(), specs_, max_shard_bytes);
    EXPECT_TRUE(writer.ok()) << writer.status().message();
    for (size_t i = 0; i < specs_.size(); ++i) {
      const std::vector<std::byte> bytes = Content(i);
      const size_t half = bytes.size() / 2;
      const std::span<const std::byte> all(bytes);
      EXPECT_TRUE(writer->Write(i, static_cast<int64_t>(half), all.subspan(half)).ok());
      EXPECT_TRUE(writer->Write(i, 0, all.first(half)).ok());
    }
    EXPECT_TRUE(writer->Close().ok());
    return writer->num_shards();
  }
  std::vector<std::byte> Content(size_t i) const {
    std::vector<std::byte> bytes(static_cast<size_t>(specs_[i].num_elements()) *
                                 SizeOf(specs_[i].dtype));
    for (size_t p = 0; p < bytes.size(); ++p) bytes[p] = static_cast<std::byte>(i * 31 + p);
    return bytes;
  }
  void CheckReadsBack() {
    const Result<ModelFiles> files = ModelFiles::Open(dir_.string());
    ASSERT_TRUE(files.ok()) << files.status().message();
    EXPECT_EQ(files.value().Names().size(), specs_.size());
    for (size_t i = 0; i < specs_.size(); ++i) {
      const Result<TensorView> view = files.value().Find(specs_[i].name, specs_[i].shape);
      ASSERT_TRUE(view.ok()) << view.status().message();
      EXPECT_EQ(view.value().dtype, specs_[i].dtype);
      const std::vector<std::byte> bytes = Content(i);
      ASSERT_EQ(view.value().bytes, bytes.size());
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), view.value().data));
    }
  }

  std::filesystem::path dir_;
  std::vector<TensorSpec> specs_ = {{"a.weight", DType::kBf16, {4, 6}},
                                    {"b.weight", DType::kF32, {10}},
                                    {"c", DType::kF16, {3, 1, 5}},
                                    {"d", DType::kF32, {0, 3}},
                                    {"e", DType::kF32, {40}}};
};

TEST_F(SafetensorsWriterTest, OneFile) {
  EXPECT_EQ(WriteAll(int64_t{1} << 40), 1u);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "model.safetensors.index.json"));
  CheckReadsBack();
}

// The shards have 48 + 40, 30 + 0, and 160 bytes. The last one exceeds the limit.
TEST_F(SafetensorsWriterTest, Shards) {
  EXPECT_EQ(WriteAll(90), 3u);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "model.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(dir_ / "model-00003-of-00003.safetensors"));
  CheckReadsBack();
  EXPECT_EQ(WriteAll(90), 3u);  // replaces the files of the first call
  CheckReadsBack();
}

TEST_F(SafetensorsWriterTest, NoDirectory) {
  const Result<SafetensorsWriter> writer =
      SafetensorsWriter::Create((dir_ / "none").string(), specs_, 90);
  EXPECT_THAT(writer.status().message(), ::testing::HasSubstr("No such file"));
}

}  // namespace
}  // namespace skein
