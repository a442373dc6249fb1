#include "model/weights/random_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "model/config/shapes.h"
#include "model/weights/tensor_list.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

TEST(ModelShapes, ConfigsLoadAndCountAsPublished) {
  const std::map<std::string, int64_t> published = {
      {"smollm2-135m", 134515008},    {"smollm2-360m", 361821120},     {"qwen2.5-0.5b", 494032768},
      {"qwen2.5-1.5b", 1543714304},   {"qwen2.5-3b", 3085938688},      {"qwen2.5-7b", 7615616512},
      {"qwen3-0.6b", 596049920},      {"qwen3-1.7b", 1720574976},      {"qwen3-4b", 4022468096},
      {"qwen3-8b", 8190735360},       {"llama3.2-1b", 1235814400},     {"llama3.2-3b", 3212749824},
      {"qwen3-30b-a3b", 30532122624}, {"llama3-8b", 8030261248},       {"mistral-7b", 7248023552},
      {"modernbert-base", 149014272}, {"modernbert-large", 394781696}, {"mmbert-small", 140493696},
      {"mmbert-base", 306939648},     {"all-mpnet-base-v2", 108895872}};
  size_t checked = 0;
  for (const ModelShape& shape : ModelShapes()) {
    SCOPED_TRACE(shape.name);
    const Result<ModelConfig> config =
        ParseModelConfig(ShapeConfigJson(shape, 300, shape.tokens, DType::kF16));
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config.value().architecture, shape.architecture);
    EXPECT_EQ(config.value().file_dtype, DType::kF16);
    EXPECT_EQ(config.value().rope.theta, shape.rope_theta);
    EXPECT_EQ(std::max(config.value().decoder.rms_norm_eps, config.value().encoder.layer_norm_eps),
              static_cast<float>(shape.rms_norm_eps));
    EXPECT_EQ(config.value().rope.type == RopeType::kLlama3, shape.llama3_factor > 0);
    const auto it = published.find(shape.name);
    if (it != published.end()) {
      EXPECT_EQ(config.value().NumParameters(), it->second);
      ++checked;
    }
    int64_t listed = 0;
    for (const ModelTensor& tensor : ListTensors(config.value())) {
      int64_t size = 1;
      for (const int64_t dim : tensor.shape) size *= dim;
      listed += size;
    }
    EXPECT_EQ(listed, config.value().NumParameters());
  }
  EXPECT_EQ(checked, published.size());
  EXPECT_EQ(FindModelShape("none"), nullptr);
}

class RandomModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() /
           ("skein_random_" + std::to_string(getpid()) +
            ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(dir_);
    const ModelShape* shape = FindModelShape("tiny");
    config_ = ParseModelConfig(ShapeConfigJson(*shape, 9001, shape->tokens, DType::kF32)).value();
  }
  void TearDown() override { fs::remove_all(dir_); }

  void Write(const RandomWeightsOptions& options, int num_threads) {
    ThreadTeam team(num_threads);
    const Status status = WriteRandomWeights(config_, options, dir_.string(), &team, {});
    ASSERT_TRUE(status.ok()) << status.message();
  }
  std::string Bytes(const std::string& name) {
    std::ifstream in(dir_ / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }

  fs::path dir_;
  ModelConfig config_;
};

// The embedding of 9,001 x 128 elements has more than one chunk, so threads share a tensor.
TEST_F(RandomModelTest, ASeedIsAFileWhateverTheThreads) {
  Write({DType::kBf16, 7}, 1);
  const std::string one = Bytes("model.safetensors");
  Write({DType::kBf16, 7}, 3);
  EXPECT_EQ(Bytes("model.safetensors"), one);
  Write({DType::kBf16, 8}, 3);
  EXPECT_NE(Bytes("model.safetensors"), one);
}

TEST_F(RandomModelTest, ShardsHoldTheSameNumbers) {
  Write({DType::kF16, 7}, 2);
  const fs::path single = dir_ / "single";
  fs::create_directories(single);
  fs::rename(dir_ / "model.safetensors", single / "model.safetensors");
  Write({DType::kF16, 7, 500'000}, 2);
  const Result<ModelFiles> shards = ModelFiles::Open(dir_.string());
  const Result<ModelFiles> whole = ModelFiles::Open(single.string());
  ASSERT_TRUE(shards.ok() && whole.ok()) << shards.status().message();
  EXPECT_TRUE(fs::exists(dir_ / "model.safetensors.index.json"));
  for (const std::string& name : whole.value().Names()) {
    const Result<TensorView> a = whole.value().Find(name), b = shards.value().Find(name);
    ASSERT_TRUE(a.ok() && b.ok()) << name;
    ASSERT_EQ(a.value().bytes, b.value().bytes);
    EXPECT_EQ(std::memcmp(a.value().data, b.value().data, a.value().bytes), 0) << name;
  }
}

// Checks mean, deviation and correlation of each tensor. The limit is six standard errors of the
// estimate.
TEST_F(RandomModelTest, NumbersAreDistributedAsPromised) {
  Write({DType::kF32, 1}, 2);
  const Result<ModelFiles> files = ModelFiles::Open(dir_.string());
  ASSERT_TRUE(files.ok());
  for (const ModelTensor& tensor : ListTensors(config_)) {
    SCOPED_TRACE(tensor.name);
    const Result<TensorView> view = files.value().Find(tensor.name, tensor.shape);
    ASSERT_TRUE(view.ok()) << view.status().message();
    const size_t count = view.value().bytes / 4;
    std::vector<float> values(count);
    std::memcpy(values.data(), view.value().data, view.value().bytes);
    double sum = 0, squares = 0, neighbours = 0;
    const double mean = tensor.role == TensorRole::kNorm ? 1 : 0;
    for (size_t i = 0; i < count; ++i) {
      sum += values[i] - mean;
      squares += (values[i] - mean) * (values[i] - mean);
      if (i > 0) neighbours += (values[i] - mean) * (values[i - 1] - mean);
    }
    double deviation = 0.05;
    if (tensor.shape.size() == 2) deviation = 1 / std::sqrt(tensor.shape[1]);
    if (tensor.role == TensorRole::kOutput) deviation /= std::sqrt(2.0 * config_.num_layers);
    const double n = static_cast<double>(count);
    EXPECT_NEAR(sum / n, 0, 6 * deviation / std::sqrt(n));
    EXPECT_NEAR(std::sqrt(squares / n) / deviation, 1, 6 / std::sqrt(2 * n));
    EXPECT_NEAR(neighbours / n / (deviation * deviation), 0, 6 / std::sqrt(n));
  }
}

TEST_F(RandomModelTest, ReportsProgressAndFailure) {
  ThreadTeam team(2);
  int64_t last = 0, total = 0;
  const LoadProgress progress = [&](int64_t done, int64_t all) {
    EXPECT_GT(done, last);
    last = done;
    total = all;
  };
  ASSERT_TRUE(WriteRandomWeights(config_, {}, dir_.string(), &team, progress).ok());
  EXPECT_EQ(last, total);
  EXPECT_EQ(total, config_.NumParameters() * 2);
  EXPECT_FALSE(WriteRandomWeights(config_, {}, (dir_ / "none").string(), &team, {}).ok());
}

}  // namespace
}  // namespace skein
