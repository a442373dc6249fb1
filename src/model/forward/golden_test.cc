// Log-probabilities and greedy continuations, compared with golden files of independent
// implementations.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "testing/loaded_model.h"
#include "testing/shared.h"

namespace skein {
namespace {

using testing::LoadedModel;
using testing::Logits;
using Json = nlohmann::json;

Json ReadJson(const std::string& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

std::vector<double> LogProbs(const Logits& logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float l : logits) sum += std::exp(l - max);
  std::vector<double> out;
  for (const float l : logits) out.push_back(l - max - std::log(sum));
  return out;
}

// The largest error of a log-probability. A logit is h . w, |h| <= sqrt(hidden) * max|norm|. A
// relative error d of h moves the logit by at most d |h| |w|, and a log-probability by twice that.
// Errors of single roundings are independent, so over `n` roundings of a value they grow as
// sqrt(n):
//
//   f32:  unit roundoff u = 2^-24; a sum's chain of roundings gives about u |h| |w|
//   bf16: u = 2^-9 for each rounded activation; over a sum they average out to u |h| |w| / sqrt(k)
//
// A factor of 4 covers the amplification by layers. A linear layer norms a result that is small
// where q and k are nearly orthogonal, at the first tokens above all. In these cases, weights that
// differ by one rounding change log-probabilities by up to 9e-5 in float64. Twice as much is
// allowed.
double Tolerance(const ModelWeights& weights) {
  const ModelConfig& config = weights.config;
  double norm = 0, row_norm = 0;
  for (const float g : weights.final_norm) norm = std::max(norm, std::abs(double{g}));
  std::vector<float> row(config.hidden_size);
  for (int32_t id = 0; id < config.vocab_size; ++id) {
    weights.output.UnpackRow(id, row.data());
    double sum = 0;
    for (const float w : row) sum += double{w} * w;
    row_norm = std::max(row_norm, std::sqrt(sum));
  }
  const double roundings = 9.0 * config.num_layers + 2;  // operators and residual additions
  const double hidden = config.hidden_size;
  const double unit = weights.dtype == DType::kF32 ? 0x1p-24 : 0x1p-9 / std::sqrt(hidden);
  const double amplification = config.has_linear_layers() ? 8 : 4;
  return amplification * 2 * unit * std::sqrt(roundings) * std::sqrt(hidden) * norm * row_norm /
         config.decoder.logits_divisor;
}

constexpr int32_t kMaxStepTokens = 512;

class GoldenRun {
 public:
  GoldenRun(const std::string& dir, const std::string& dtype)
      // Weights in blocks are widened: their products would round the rows to int8.
      : model_(dir, {.dtype = dtype, .quantization = "none"}),
        pass_(model_.context(), {.max_tokens = kMaxStepTokens, .max_logit_rows = 64}),
        tolerance_(Tolerance(model_.weights())) {}

  // Runs a prompt and stores its log-probabilities.
  void Prompt(const std::vector<int32_t>& ids) {
    blocks_ = testing::Blocks(0, kMaxStepTokens);
    std::reverse(blocks_.begin(), blocks_.end());
    logits_ = testing::RunAlone(&pass_, ids, 0, static_cast<int32_t>(ids.size()), blocks_,
                                model_.vocab());
    ASSERT_EQ(logits_.size(), ids.size());
    num_tokens_ = static_cast<int32_t>(ids.size());
  }

  void ExpectLogProbs(size_t position, const std::vector<int32_t>& ids,
                      const std::vector<double>& expected) {
    const std::vector<double> actual = LogProbs(logits_[position]);
    for (size_t i = 0; i < ids.size(); ++i) {
      const double error = std::abs(actual[ids[i]] - expected[i]);
      worst_ = std::max(worst_, error);
      ASSERT_LE(error, tolerance_) << "position " << position << ", token " << ids[i];
    }
  }

  // Continues the prompt greedily, one token at a time.
  std::vector<int32_t> Greedy(size_t num_tokens) {
    std::vector<int32_t> all(num_tokens_, 0);  // only the tokens behind the prompt are read
    Logits last = logits_.back();
    while (all.size() < num_tokens_ + num_tokens) {
      const auto best = std::max_element(last.begin(), last.end());
      all.push_back(static_cast<int32_t>(best - last.begin()));
      const auto end = static_cast<int32_t>(all.size());
      last = testing::RunAlone(&pass_, all, end - 1, end, blocks_, model_.vocab())[0];
    }
    return {all.begin() + num_tokens_, all.end()};
  }

  double worst() const { return worst_; }
  double tolerance() const { return tolerance_; }

 private:
  LoadedModel model_;
  ForwardPass pass_;
  double tolerance_;
  double worst_ = 0;
  std::vector<int32_t> blocks_;
  std::vector<Logits> logits_;
  int32_t num_tokens_ = 0;
};

TEST(ForwardGoldenTest, Stories260K) {
  SKEIN_REQUIRE_SHARED();
  const std::string dir = testing::SharedDir() + "/models/stories260K";
  GoldenRun run(dir, "auto");
  const Json golden = ReadJson(dir + "/golden.json");
  ASSERT_EQ(golden["prompts"].size(), 8u);
  for (const Json& prompt : golden["prompts"]) {
    SCOPED_TRACE(prompt["name"].get<std::string>());
    run.Prompt(prompt["prompt_ids"]);
    for (size_t i = 0; i < prompt["positions"].size(); ++i) {
      const Json& position = prompt["positions"][i];
      run.ExpectLogProbs(i, position["top5"], position["logprobs_f64"]);
    }
    const std::vector<int32_t> expected = prompt["greedy_ids"];
    EXPECT_EQ(run.Greedy(expected.size()), expected);
  }
  RecordProperty("worst_error", std::to_string(run.worst()));
}

// Runs every prompt of a golden model.
void ExpectGolden(const std::string& dir, const std::string& dtype) {
  const Json golden = ReadJson(dir + "/golden.json");
  GoldenRun run(dir, dtype);
  ASSERT_FALSE(golden["prompts"].empty());
  for (const Json& prompt : golden["prompts"]) {
    run.Prompt(prompt["prompt_ids"]);
    const size_t num_tokens = prompt["prompt_ids"].size();
    for (size_t i = 0; i < num_tokens; ++i) {
      run.ExpectLogProbs(i, prompt["top_ids"][i], prompt["top_logprobs"][i]);
    }
    std::vector<int32_t> all_ids(prompt["last_logprobs"].size());
    std::iota(all_ids.begin(), all_ids.end(), 0);
    run.ExpectLogProbs(num_tokens - 1, all_ids, prompt["last_logprobs"]);
    const std::vector<int32_t> expected = prompt["greedy_ids"];
    EXPECT_EQ(run.Greedy(expected.size()), expected);
  }
  std::printf("worst error %g of %g\n", run.worst(), run.tolerance());
}

std::vector<std::string> Dirs16Bit() {
  std::vector<std::string> dirs = testing::GoldenModelDirs();
  std::erase_if(dirs, [](const std::string& dir) {
    return ReadJson(dir + "/golden.json")["file_dtype"] == "float32";
  });
  return dirs;
}

std::string NameOfModel(const ::testing::TestParamInfo<std::string>& param) {
  std::string name = std::filesystem::path(param.param).filename();
  for (const char c : {'-', '.'}) std::replace(name.begin(), name.end(), c, '_');
  return name;
}

class ComputedInF32Test : public ::testing::TestWithParam<std::string> {};
TEST_P(ComputedInF32Test, AgreesWithGolden) { ExpectGolden(GetParam(), "f32"); }
INSTANTIATE_TEST_SUITE_P(GoldenModels, ComputedInF32Test,
                         ::testing::ValuesIn(testing::GoldenModelDirs()), NameOfModel);

class ComputedInBf16Test : public ::testing::TestWithParam<std::string> {};
TEST_P(ComputedInBf16Test, AgreesWithGolden) { ExpectGolden(GetParam(), "auto"); }
INSTANTIATE_TEST_SUITE_P(GoldenModels, ComputedInBf16Test, ::testing::ValuesIn(Dirs16Bit()),
                         NameOfModel);

}  // namespace
}  // namespace skein
