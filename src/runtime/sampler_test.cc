#include "runtime/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "base/random.h"

namespace skein {
namespace {

class SamplerTest : public ::testing::Test {
 protected:
  static constexpr int32_t kVocab = 700;

  SamplerTest() : kernels_(MakeKernels(Isa::kScalar).value()), sampler_(kernels_.get(), kVocab) {}

  std::vector<float> RandomLogits(uint64_t seed) {
    Random random(seed);
    std::vector<float> logits(kVocab);
    for (float& x : logits) x = static_cast<float>(random.Uniform() * 12 - 6);
    return logits;
  }

  DrawResult Draw(const GenerateSpec& generate, const std::vector<float>& logits,
                  const std::vector<TokenId>& history, int32_t prompt_len, int32_t sample = 0) {
    DrawResult result;
    sampler_.Draw({&generate, sample, history, prompt_len}, logits, &scratch_, &result);
    return result;
  }

  std::unique_ptr<Kernels> kernels_;
  Sampler sampler_;
  SamplerScratch scratch_;
};

// The distribution that the parameters define, computed plainly in double: id -> probability.
std::map<TokenId, double> Distribution(const SamplingParams& s, const std::vector<float>& logits) {
  std::vector<std::pair<double, TokenId>> p;
  const double max = *std::max_element(logits.begin(), logits.end());
  for (size_t i = 0; i < logits.size(); ++i)
    p.emplace_back(std::exp((logits[i] - max) / s.temperature), static_cast<TokenId>(i));
  std::sort(p.begin(), p.end(), [](auto& a, auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  if (s.top_k > 0 && p.size() > static_cast<size_t>(s.top_k)) p.resize(s.top_k);
  double total = 0, sum = 0;
  for (auto& [w, id] : p) total += w;
  size_t keep = 0;
  while (keep < p.size() && sum < total * s.top_p) sum += p[keep++].first;
  p.resize(keep);
  std::erase_if(p, [&](auto& x) { return x.first < s.min_p; });
  total = 0;
  for (auto& [w, id] : p) total += w;
  std::map<TokenId, double> distribution;
  for (auto& [w, id] : p) distribution[id] = w / total;
  return distribution;
}

TEST_F(SamplerTest, GreedyTakesTheLargestAndOfEqualsTheLowestId) {
  GenerateSpec generate;
  generate.sampling.temperature = 0;
  auto logits = RandomLogits(1);
  logits[300] = logits[77] = 9;
  EXPECT_EQ(Draw(generate, logits, {1}, 1).token.token, 77);
}

TEST_F(SamplerTest, DrawsFollowTheDistribution) {
  constexpr int kDraws = 8000;
  SamplingParams variants[5];
  variants[1].temperature = 0.5f;
  variants[2].top_k = 40;
  variants[3].top_p = 0.7f;
  variants[4] = {.temperature = 1.5f, .top_k = 300, .top_p = 0.9f, .min_p = 0.05f};
  for (const SamplingParams& variant : variants) {
    GenerateSpec generate;
    generate.sampling = variant;
    const auto logits = RandomLogits(7);
    const auto expected = Distribution(variant, logits);
    std::map<TokenId, int> counts;
    for (int i = 0; i < kDraws; ++i) {
      generate.sampling.seed = i;
      ++counts[Draw(generate, logits, {5}, 1).token.token];
    }
    double chi_square = 0, rest_expected = 0, rest_count = 0;
    int cells = 0;
    for (const auto& [id, probability] : expected) {
      if (probability * kDraws < 5) {
        rest_expected += probability * kDraws;
        rest_count += counts[id];
        continue;
      }
      chi_square += std::pow(counts[id] - probability * kDraws, 2) / (probability * kDraws);
      ++cells;
    }
    if (rest_expected > 5)
      chi_square += std::pow(rest_count - rest_expected, 2) / rest_expected, ++cells;
    // Mean `cells`, standard deviation sqrt(2 cells): six of them are chance no more.
    EXPECT_LT(chi_square, cells + 6 * std::sqrt(2.0 * cells)) << "top_k " << variant.top_k;
    for (const auto& [id, count] : counts)
      EXPECT_TRUE(count == 0 || expected.count(id)) << "drew " << id << ", which is cut off";
  }
}

TEST_F(SamplerTest, CutsKeepExactlyTheirSet) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    GenerateSpec generate;
    generate.sampling.temperature = static_cast<float>(0.1 + random.Uniform());
    if (random.OneIn(2)) generate.sampling.top_k = static_cast<int32_t>(random.Between(1, kVocab));
    if (random.OneIn(2))
      generate.sampling.top_p = static_cast<float>(0.01 + 0.98 * random.Uniform());
    if (random.OneIn(2)) generate.sampling.min_p = static_cast<float>(random.Uniform());
    const auto logits = RandomLogits(seed);
    const auto expected = Distribution(generate.sampling, logits);
    for (int i = 0; i < 30; ++i) {
      generate.sampling.seed = i;
      EXPECT_TRUE(expected.count(Draw(generate, logits, {5}, 1).token.token)) << "seed " << seed;
    }
  }
}

TEST_F(SamplerTest, SeedSampleAndPositionDecide) {
  GenerateSpec generate;
  generate.sampling.seed = 42;
  const auto logits = RandomLogits(3);
  const auto first = Draw(generate, logits, {1, 2}, 2).token.token;
  Draw(generate, RandomLogits(4), {9, 9, 9}, 1);  // whatever is drawn in between
  EXPECT_EQ(Draw(generate, logits, {1, 2}, 2).token.token, first);
  std::map<TokenId, int> by_sample, by_position;
  std::vector<TokenId> history = {1, 2};
  for (int i = 0; i < 50; ++i) {
    ++by_sample[Draw(generate, logits, {1, 2}, 2, i).token.token];
    ++by_position[Draw(generate, logits, history, 2).token.token];
    history.push_back(3);
  }
  EXPECT_GT(by_sample.size(), 10u);
  EXPECT_GT(by_position.size(), 10u);
}

TEST_F(SamplerTest, AdjustsAsDefined) {
  GenerateSpec generate;
  generate.sampling.temperature = 0;
  std::vector<float> logits(kVocab, -1.0f);
  logits[10] = 5;
  logits[11] = 4;
  logits[12] = 3;
  const std::vector<TokenId> history = {10, 11, 11};  // prompt 10, output 11 11

  generate.sampling.logit_bias = {{12, 2.5f}};
  EXPECT_EQ(Draw(generate, logits, history, 1).token.token, 12);
  generate.sampling.logit_bias.clear();

  generate.sampling.allowed_token_ids = {12, 500};
  EXPECT_EQ(Draw(generate, logits, history, 1).token.token, 12);
  generate.sampling.allowed_token_ids.clear();

  generate.sampling.repetition_penalty = 2;  // 10 and 11 are halved; 12 leads
  EXPECT_EQ(Draw(generate, logits, history, 1).token.token, 12);
  generate.sampling.repetition_penalty = 1;

  logits[10] = 3.5f;
  EXPECT_EQ(Draw(generate, logits, history, 1).token.token, 11);
  generate.sampling.presence_penalty = 0.75f;  // once for 11, not for the prompt's 10
  EXPECT_EQ(Draw(generate, logits, history, 1).token.token, 10);
  generate.sampling.presence_penalty = 0.25f;
  EXPECT_EQ(Draw(generate, logits, history, 1).token.token, 11);
  generate.sampling.presence_penalty = 0;
  generate.sampling.frequency_penalty = 0.3f;  // twice for 11
  EXPECT_EQ(Draw(generate, logits, history, 1).token.token, 10);
  generate.sampling.frequency_penalty = 0;

  generate.stop_token_ids = {11};
  generate.min_tokens = 3;
  EXPECT_EQ(Draw(generate, logits, history, 1).token.token, 10);
  generate.min_tokens = 2;
  EXPECT_EQ(Draw(generate, logits, history, 1).token.token, 11);
}

TEST_F(SamplerTest, LogprobsAreOfTheUnmodifiedDistribution) {
  GenerateSpec generate;
  generate.sampling.temperature = 0;
  generate.sampling.logit_bias = {{123, 50.0f}};
  generate.num_logprobs = 5;
  const auto logits = RandomLogits(9);
  const OutputToken token = Draw(generate, logits, {1}, 1).token;
  ASSERT_EQ(token.token, 123);
  double sum = 0;
  for (float x : logits) sum += std::exp(static_cast<double>(x));
  EXPECT_NEAR(token.chosen.logprob, logits[123] - std::log(sum), 1e-5);
  int32_t rank = 1;
  for (int32_t i = 0; i < kVocab; ++i) rank += logits[i] > logits[123];
  EXPECT_EQ(token.chosen.rank, rank);
  ASSERT_EQ(token.top_logprobs.size(), 5u);
  EXPECT_EQ(logits[token.top_logprobs[0].token], *std::max_element(logits.begin(), logits.end()));
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(token.top_logprobs[i].rank, static_cast<int32_t>(i + 1));
}

TEST_F(SamplerTest, LogitsThatAreNoNumbersFail) {
  GenerateSpec generate;
  for (float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto logits = RandomLogits(5);
    logits[600] = bad;
    EXPECT_FALSE(Draw(generate, logits, {1}, 1).finite);
  }
  auto logits = RandomLogits(5);
  logits[600] = -std::numeric_limits<float>::infinity();
  generate.sampling.temperature = 0.01f;
  EXPECT_TRUE(Draw(generate, logits, {1}, 1).finite);
  generate.sampling.allowed_token_ids = {600};  // nothing that can be drawn is left
  EXPECT_FALSE(Draw(generate, logits, {1}, 1).finite);
}

}  // namespace
}  // namespace skein
