#include "io/torch/torch_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "io/torch/torch_pickle.h"

namespace skein {
namespace {

constexpr char kHeadPath[] = SKEIN_SOURCE_DIR "/tests/data/kev/qwen3-adapter/head.pt";

std::string ReadWhole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class TorchFileTest : public ::testing::Test {
 protected:
  ~TorchFileTest() override { std::filesystem::remove(path_); }

  Result<TorchFile> OpenBytes(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return OpenTorchFile(path_);
  }

  const std::string path_ =
      std::filesystem::temp_directory_path() / ("torch_file_test." + std::to_string(getpid()));
};

Result<Pickle> ReadText(const std::string& text) {
  return ReadPickle(std::as_bytes(std::span(text)), "x");
}

TEST_F(TorchFileTest, HasDataAndTensors) {
  Result<TorchFile> file = OpenTorchFile(kHeadPath);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const JsonObject& data = file->data.root();
  EXPECT_EQ(data.String("base").value(), "base");
  EXPECT_EQ(data.Double("temperature").value(), 1.0);
  EXPECT_EQ(data.Int("head_dim").value(), 64);
  EXPECT_EQ(data.Bool("option_isolation").value(), false);
  EXPECT_EQ(data.Strings("holdout").value(), std::vector<std::string>{"x"});
  EXPECT_FALSE(data.Has("suite"));
  const auto args = data.Object("args").value();
  ASSERT_TRUE(args);
  EXPECT_EQ(args->Int("epochs").value(), 1);
  EXPECT_EQ(args->Double("lr").value(), 2e-4);
  EXPECT_EQ(file->tensors.header().tensors.size(), 4u);
  Result<TensorView> weight = file->tensors.Find("head.q.weight");
  ASSERT_TRUE(weight.ok());
  EXPECT_EQ(weight->shape, (std::vector<int64_t>{64, 64}));
  EXPECT_EQ(weight->dtype, DType::kF32);
  EXPECT_EQ(file->tensors.Find("head.k.bias")->shape, std::vector<int64_t>{64});
}

TEST_F(TorchFileTest, BrokenFilesAreErrors) {
  const std::string whole = ReadWhole(kHeadPath);
  ASSERT_GT(whole.size(), 1000u);
  ASSERT_TRUE(OpenBytes(whole).ok());
  for (size_t size = 0; size < whole.size(); size += 97) {
    ASSERT_FALSE(OpenBytes(whole.substr(0, size)).ok()) << size;
  }
  std::mt19937_64 random(7);
  for (int i = 0; i < 1500; ++i) {
    std::string changed = whole;
    // Most of the changed bytes are in the pickle at the beginning, or in the directory at the end.
    const size_t window = 2500;
    const size_t at = random() % std::min(window, whole.size());
    changed[random() % 2 == 0 ? at : whole.size() - 1 - at] = static_cast<char>(random());
    (void)OpenBytes(changed);  // may fail or not, but must return
  }
}

TEST(TorchPickle, NoCodeRuns) {
  const Result<Pickle> system = ReadText("cposix\nsystem\nX\x02\0\0\0ls\x85R.");
  EXPECT_FALSE(system.ok());
  const Result<Pickle> call = ReadText(std::string("cposix\nsystem\n)R.", 17));
  EXPECT_EQ(call.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(call.status().message().find("'posix system'"), std::string::npos);
  EXPECT_NE(ReadText("i").status().message().find("operation 105"), std::string::npos);
}

TEST(TorchPickle, ValuesThatHoldThemselvesEnd) {
  // A list that is its own item, nested without end.
  EXPECT_TRUE(ReadText(std::string("]q\0h\0a.", 7)).ok());
  EXPECT_FALSE(ReadText(std::string("]q\0h\1a.", 7)).ok());
  EXPECT_FALSE(ReadText("").ok());
  EXPECT_FALSE(ReadText(".").ok());
  EXPECT_FALSE(ReadText("e.").ok());
  EXPECT_FALSE(ReadText("K").ok());
}

TEST(TorchPickle, Numbers) {
  const auto number = [](const std::string& text) {
    const Pickle pickle = ReadText(text).value();
    return pickle.values[pickle.root].integer;
  };
  EXPECT_EQ(number("K\xff."), 255);
  EXPECT_EQ(number(std::string("M\x01\x02.", 4)), 513);
  EXPECT_EQ(number("J\xff\xff\xff\xff."), -1);
  EXPECT_EQ(number(std::string("\x8a\x01\x80.", 4)), -128);
  EXPECT_EQ(number(std::string("\x8a\x00.", 3)), 0);
  EXPECT_EQ(number(std::string("\x8a\x02\xff\x00.", 5)), 255);
}

}  // namespace
}  // namespace skein
