#include "runtime/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "skein/token_grammar.h"

namespace skein {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The distribution by the definition of SamplingParams, computed simply: sorted, in double.
std::vector<double> ReferenceDistribution(const DrawSpec& spec, const std::vector<float>& logits) {
  const SamplingParams& p = spec.generate->sampling;
  const int32_t vocab = logits.size();
  std::vector<double> l(logits.begin(), logits.end());
  if (!p.allowed_token_ids.empty()) {
    for (int32_t id = 0; id < vocab; ++id) {
      const auto& a = p.allowed_token_ids;
      if (std::find(a.begin(), a.end(), id) == a.end()) l[id] = -kInfinity;
    }
  }
  if (!spec.generate->choices.empty()) {
    const std::vector<TokenId> output(spec.history.begin() + spec.prompt_len, spec.history.end());
    std::vector<bool> may_come(vocab);
    for (const std::vector<TokenId>& choice : spec.generate->choices) {
      if (choice.size() <= output.size()) continue;
      const std::vector<TokenId> head(choice.begin(), choice.begin() + output.size());
      if (head == output) may_come[choice[output.size()]] = true;
    }
    for (int32_t id = 0; id < vocab; ++id) l[id] = may_come[id] ? l[id] : -kInfinity;
  }
  for (const auto& [id, bias] : p.logit_bias) l[id] += bias;
  std::map<TokenId, int> seen, output;
  for (size_t i = 0; i < spec.history.size(); ++i) {
    ++seen[spec.history[i]];
    if (static_cast<int32_t>(i) >= spec.prompt_len) ++output[spec.history[i]];
  }
  for (const auto& [id, n] : seen) {
    l[id] = l[id] > 0 ? l[id] / p.repetition_penalty : l[id] * p.repetition_penalty;
  }
  for (const auto& [id, n] : output) l[id] -= p.presence_penalty + n * p.frequency_penalty;
  if (static_cast<int32_t>(spec.history.size()) - spec.prompt_len < spec.generate->min_tokens) {
    for (const TokenId id : spec.generate->stop_token_ids) l[id] = -kInfinity;
  }
  std::vector<int32_t> order(vocab);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return l[a] > l[b]; });
  std::vector<double> prob(vocab, 0.0);
  if (p.temperature == 0) {
    prob[order[0]] = 1;
    return prob;
  }
  for (int32_t id = 0; id < vocab; ++id) prob[id] = std::exp((l[id] - l[order[0]]) / p.temperature);
  const auto drop_from = [&](size_t rank) {
    for (; rank < order.size(); ++rank) prob[order[rank]] = 0;
  };
  if (p.top_k > 0) drop_from(p.top_k);
  if (p.top_p < 1) {
    const double wanted = p.top_p * std::accumulate(prob.begin(), prob.end(), 0.0);
    double sum = 0;
    size_t rank = 0;
    while (rank < order.size() && sum < wanted) sum += prob[order[rank++]];
    drop_from(rank);
  }
  for (double& x : prob) x = x < p.min_p ? 0 : x;
  const double total = std::accumulate(prob.begin(), prob.end(), 0.0);
  for (double& x : prob) x /= total;
  return prob;
}

class SamplerTest : public ::testing::Test {
 protected:
  static constexpr int32_t kVocab = 300;

  SamplerTest()
      : kernels_(MakeKernels(SelectIsa().value()).value()), sampler_(kernels_.get(), kVocab, 2) {
    std::mt19937_64 random(20240501);
    std::normal_distribution<float> normal(0, 2);
    for (float& l : logits_) l = normal(random);
  }

  DrawResult Draw(const GenerateSpec& generate, const std::vector<float>& logits,
                  const std::vector<TokenId>& history = {5}, int32_t prompt_len = 1,
                  int32_t sample = 0, int thread = 0) {
    DrawResult result;
    sampler_.Draw({&generate, sample, history, prompt_len}, logits.data(), thread, &result);
    return result;
  }

  // Draws with many seeds. The counts must fit the reference by a chi-square test, and tokens that
  // the reference excludes must never be drawn.
  void ExpectFits(GenerateSpec generate, const std::vector<TokenId>& history, int32_t prompt_len) {
    constexpr int kDraws = 6000;
    const std::vector<double> expected =
        ReferenceDistribution({&generate, 0, history, prompt_len}, logits_);
    std::vector<int> counts(kVocab);
    for (int i = 0; i < kDraws; ++i) {
      generate.sampling.seed = i;
      const DrawResult result = Draw(generate, logits_, history, prompt_len);
      ASSERT_TRUE(result.finite);
      ++counts[result.token.token];
    }
    double chi2 = 0, rest_expected = 0, rest_count = 0;
    int degrees = -1;
    for (int32_t id = 0; id < kVocab; ++id) {
      if (expected[id] == 0) {
        ASSERT_EQ(counts[id], 0) << "token " << id << " was excluded";
      }
      if (expected[id] * kDraws < 10) {
        rest_expected += expected[id] * kDraws;
        rest_count += counts[id];
        continue;
      }
      const double d = counts[id] - expected[id] * kDraws;
      chi2 += d * d / (expected[id] * kDraws);
      ++degrees;
    }
    if (rest_expected >= 10) {
      chi2 += (rest_count - rest_expected) * (rest_count - rest_expected) / rest_expected;
      ++degrees;
    }
    // The mean is `degrees` and the variance 2 * degrees; the limit is six standard deviations.
    EXPECT_LT(chi2, degrees + 6 * std::sqrt(2.0 * std::max(degrees, 1)) + 6);
  }

  std::unique_ptr<Kernels> kernels_;
  Sampler sampler_;
  std::vector<float> logits_ = std::vector<float>(kVocab);
};

GenerateSpec WithTemperature(float temperature) {
  GenerateSpec generate;
  generate.sampling.temperature = temperature;
  return generate;
}

TEST_F(SamplerTest, GreedyTakesTheLargestAndOfEqualsTheLowestId) {
  GenerateSpec generate = WithTemperature(0);
  logits_[17] = logits_[200] = 50;
  EXPECT_EQ(Draw(generate, logits_).token.token, 17);
  generate.sampling.logit_bias = {{200, 0.5f}};
  EXPECT_EQ(Draw(generate, logits_).token.token, 200);
  generate.sampling.allowed_token_ids = {3, 9};
  generate.sampling.logit_bias = {{9, 100.0f}};
  EXPECT_EQ(Draw(generate, logits_).token.token, 9);
}

TEST_F(SamplerTest, PlainTemperatureFits) {
  ExpectFits(WithTemperature(1.0f), {5}, 1);
  ExpectFits(WithTemperature(0.4f), {5}, 1);
}

TEST_F(SamplerTest, TopKFits) {
  GenerateSpec generate = WithTemperature(1.0f);
  generate.sampling.top_k = 7;
  ExpectFits(generate, {5}, 1);
}

TEST_F(SamplerTest, TopPFits) {
  GenerateSpec generate = WithTemperature(0.9f);
  generate.sampling.top_p = 0.6f;
  ExpectFits(generate, {5}, 1);
}

TEST_F(SamplerTest, MinPFits) {
  GenerateSpec generate = WithTemperature(1.0f);
  generate.sampling.min_p = 0.11f;
  ExpectFits(generate, {5}, 1);
}

TEST_F(SamplerTest, EverythingTogetherFits) {
  GenerateSpec generate = WithTemperature(1.5f);
  generate.sampling.top_k = 60;
  generate.sampling.top_p = 0.8f;
  generate.sampling.min_p = 0.05f;
  generate.sampling.repetition_penalty = 1.3f;
  generate.sampling.presence_penalty = 0.7f;
  generate.sampling.frequency_penalty = -0.4f;
  generate.sampling.logit_bias = {{11, 4.0f}, {12, -3.0f}};
  const auto best = std::max_element(logits_.begin(), logits_.end()) - logits_.begin();
  const auto best_id = static_cast<TokenId>(best);
  ExpectFits(generate, {1, 2, best_id, 7, best_id, best_id, 11}, 3);
}

TEST_F(SamplerTest, AllowedTokensAloneCome) {
  GenerateSpec generate = WithTemperature(2.0f);
  generate.sampling.allowed_token_ids = {3, 99, 250, 251};
  ExpectFits(generate, {5}, 1);
}

TEST_F(SamplerTest, OfImpossibleAllowedTokensOneOfThemComes) {
  GenerateSpec generate = WithTemperature(1.0f);
  generate.sampling.allowed_token_ids = {99, 30};
  logits_[30] = logits_[99] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(Draw(generate, logits_, {5}, 1).token.token, 30);
  generate.sampling.temperature = 0;
  EXPECT_EQ(Draw(generate, logits_, {5}, 1).token.token, 30);
}

// A grammar whose texts are the permutations of its tokens.
class PermutationState final : public GrammarState {
 public:
  explicit PermutationState(std::vector<TokenId> tokens) : tokens_(std::move(tokens)) {}
  bool FindNext(std::span<const TokenId> output, std::span<uint32_t> mask) override {
    std::ranges::fill(mask, 0);
    bool any = false;
    for (const TokenId id : tokens_) {
      if (std::ranges::find(output, id) != output.end()) continue;
      mask[id / 32] |= 1u << id % 32;
      any = true;
    }
    return any;
  }

 private:
  std::vector<TokenId> tokens_;
};

TEST_F(SamplerTest, AGrammarsTokensAloneCome) {
  const std::vector<TokenId> tokens = {0, 31, 32, 99, 298, 299};
  PermutationState state(tokens);
  GenerateSpec same = WithTemperature(2.0f);
  same.sampling.logit_bias = {{31, 1.5f}, {200, 90.0f}};
  same.sampling.top_p = 0.9f;
  same.sampling.presence_penalty = 0.5f;
  for (size_t length = 0; length <= tokens.size(); ++length) {
    std::vector<TokenId> history = {5, 7};
    history.insert(history.end(), tokens.begin(), tokens.begin() + length);
    // Draws the same with the remaining tokens as a list. Behind all of them, every token is
    // allowed.
    same.sampling.allowed_token_ids = {tokens.begin() + length, tokens.end()};
    GenerateSpec plain = same;
    plain.sampling.allowed_token_ids.clear();
    for (int seed = 0; seed < 200; ++seed) {
      same.sampling.seed = plain.sampling.seed = seed;
      DrawResult masked;
      DrawSpec spec = {&plain, 0, history, 2};
      spec.grammar = &state;
      sampler_.Draw(spec, logits_.data(), 0, &masked);
      EXPECT_EQ(masked.token.token, Draw(same, logits_, history, 2).token.token);
    }
  }
  for (float& l : logits_) l = -kInfinity;
  logits_[1] = 0;
  const std::vector<TokenId> history = {5, 0};
  DrawResult result;
  DrawSpec spec = {&same, 0, history, 1};
  spec.grammar = &state;
  sampler_.Draw(spec, logits_.data(), 0, &result);
  EXPECT_EQ(result.token.token, 31);
}

TEST_F(SamplerTest, ChoicesAreFollowedTokenByToken) {
  GenerateSpec generate = WithTemperature(2.0f);
  generate.choices = {{3, 99, 250}, {3, 99, 251}, {3, 7}, {8}};
  ExpectFits(generate, {5}, 1);
  ExpectFits(generate, {5, 3}, 1);
  ExpectFits(generate, {5, 3, 99}, 1);
  generate.sampling.top_k = 1;
  generate.sampling.repetition_penalty = 1.7f;
  generate.sampling.logit_bias = {{250, -5.0f}};
  ExpectFits(generate, {3, 3, 99}, 1);
  // An impossible token is still better than a token outside every choice.
  for (float& l : logits_) l = -kInfinity;
  logits_[0] = 1;
  EXPECT_EQ(Draw(generate, logits_, {5, 3}, 1).token.token, 7);
  generate.sampling.temperature = 0;
  EXPECT_EQ(Draw(generate, logits_, {5, 3, 99}, 1).token.token, 250);
}

TEST_F(SamplerTest, NamedTokensGetTheirLogprobs) {
  GenerateSpec generate = WithTemperature(0);
  generate.num_logprobs = 0;
  generate.logprob_token_ids = {200, 3};
  const DrawResult named = Draw(generate, logits_);
  EXPECT_TRUE(named.token.top_logprobs.empty());
  ASSERT_EQ(named.token.named_logprobs.size(), 2u);
  generate.num_logprobs = kVocab;
  generate.logprob_token_ids.clear();
  const DrawResult all = Draw(generate, logits_);
  EXPECT_TRUE(all.token.named_logprobs.empty());
  for (int i = 0; i < 2; ++i) {
    const TokenLogprob& entry = named.token.named_logprobs[i];
    EXPECT_EQ(entry.token, i == 0 ? 200 : 3);
    const auto same = std::find_if(all.token.top_logprobs.begin(), all.token.top_logprobs.end(),
                                   [&](const TokenLogprob& t) { return t.token == entry.token; });
    ASSERT_NE(same, all.token.top_logprobs.end());
    EXPECT_EQ(entry.logprob, same->logprob);
  }
}

TEST_F(SamplerTest, StopTokensWaitForMinTokens) {
  GenerateSpec generate = WithTemperature(0);
  logits_[42] = 100;
  generate.stop_token_ids = {42, 100000};  // a config may name an id that the model lacks
  generate.min_tokens = 2;
  EXPECT_NE(Draw(generate, logits_, {1, 2, 3}, 2).token.token, 42);
  EXPECT_EQ(Draw(generate, logits_, {1, 2, 3, 4}, 2).token.token, 42);
  generate.sampling.allowed_token_ids = {42};
  EXPECT_EQ(Draw(generate, logits_, {1, 2, 3}, 2).token.token, 42);
}

TEST_F(SamplerTest, RandomCutsAgreeWithTheReference) {
  const uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    const int32_t n = 1 + static_cast<int32_t>(random() % 200);
    CandidateSet set(n);
    std::vector<CandidateSet::Candidate> all;
    for (int32_t id = 0; id < n; ++id) {
      // The values are multiples of one eighth, so that sums are exact in any order and many values
      // are equal. -0 equals +0.
      const float value = static_cast<float>(random() % 64) / 8;
      all.push_back({value == 0 && random() % 2 ? -0.0f : value, id});
      set.Add(id, all.back().value);
    }
    std::stable_sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.value > b.value; });
    size_t keep = 1 + random() % n;
    if (random() % 2) {
      set.KeepLargest(static_cast<int64_t>(keep));
    } else {
      double total = set.Total();
      const double mass = std::floor(total * 8 * double(random() % 1000) / 1000) / 8;
      double sum = 0;
      keep = 0;
      while (keep < all.size() && (keep == 0 || sum < mass)) sum += all[keep++].value;
      set.KeepMass(mass);
    }
    all.resize(keep);
    std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.id < b.id; });
    ASSERT_EQ(set.candidates().size(), all.size());
    for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(set.candidates()[i].id, all[i].id);
  }
}

TEST_F(SamplerTest, CutsOrderNegativeValues) {
  CandidateSet set(4);
  for (int32_t id = 0; id < 4; ++id) set.Add(id, -1.5f * static_cast<float>(id + 1));
  set.KeepLargest(2);
  ASSERT_EQ(set.candidates().size(), 2u);
  EXPECT_EQ(set.candidates()[0].id, 0);
  EXPECT_EQ(set.candidates()[1].id, 1);
}

TEST_F(SamplerTest, LogprobsAreOfTheUnmodifiedDistribution) {
  GenerateSpec generate = WithTemperature(0.3f);
  generate.num_logprobs = 4;
  generate.sampling.logit_bias = {{77, 100.0f}};
  logits_[8] = logits_[4] = 9;  // equal: the lower id ranks first
  const DrawResult result = Draw(generate, logits_);
  EXPECT_EQ(result.token.token, 77);
  double sum = 0;
  for (const float l : logits_) sum += std::exp(double{l});
  const int above = static_cast<int>(
      std::count_if(logits_.begin(), logits_.end(), [&](float l) { return l > logits_[77]; }));
  EXPECT_EQ(result.token.chosen.token, 77);
  EXPECT_EQ(result.token.chosen.rank, above + 1);
  // The bound allows for two roundings to f32 of numbers below 16, and the kernels' sum of 300
  // terms.
  EXPECT_NEAR(result.token.chosen.logprob, logits_[77] - std::log(sum), 1e-5);
  ASSERT_EQ(result.token.top_logprobs.size(), 4u);
  EXPECT_EQ(result.token.top_logprobs[0].token, 4);
  EXPECT_EQ(result.token.top_logprobs[1].token, 8);
  for (int i = 0; i < 4; ++i) {
    const TokenLogprob& top = result.token.top_logprobs[i];
    EXPECT_EQ(top.rank, i + 1);
    EXPECT_NEAR(top.logprob, logits_[top.token] - std::log(sum), 1e-5);
    if (i > 0) {
      EXPECT_LE(top.logprob, result.token.top_logprobs[i - 1].logprob);
    }
  }
}

TEST_F(SamplerTest, TheMostLikelyAreThoseOfAWholeSort) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  std::vector<float> logits(kVocab);
  for (const uint32_t distinct : {2u, 20u, 1u << 20}) {
    for (float& l : logits) l = static_cast<float>(random() % distinct) - 3;
    logits[random() % kVocab] = -kInfinity;
    std::vector<TokenId> order(kVocab);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
    for (const int32_t count : {0, 1, 5, kVocab - 1, kVocab}) {
      GenerateSpec generate = WithTemperature(0);
      generate.num_logprobs = count;
      const std::vector<TokenLogprob> top = Draw(generate, logits).token.top_logprobs;
      ASSERT_EQ(std::ssize(top), count);
      for (int32_t i = 0; i < count; ++i) {
        ASSERT_EQ(top[i].token, order[i]);
        ASSERT_EQ(top[i].rank, i + 1);
        if (i > 0 && logits[order[i]] == logits[order[0]]) {
          ASSERT_EQ(top[i].logprob, top[0].logprob);
        }
      }
    }
  }
}

TEST_F(SamplerTest, LogitsThatAreNotFiniteAreReported) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity}) {
    std::vector<float> logits = logits_;
    logits[123] = bad;
    EXPECT_FALSE(Draw(WithTemperature(0), logits).finite);
    EXPECT_FALSE(Draw(WithTemperature(1), logits).finite);
  }
  EXPECT_FALSE(Draw(WithTemperature(1), std::vector<float>(kVocab, -kInfinity)).finite);
  std::vector<float> logits(kVocab, -kInfinity);
  logits[9] = -3;
  const DrawResult result = Draw(WithTemperature(1), logits);
  EXPECT_TRUE(result.finite);
  EXPECT_EQ(result.token.token, 9);
}

TEST_F(SamplerTest, TinyTemperaturesAreGreedy) {
  const auto best = std::max_element(logits_.begin(), logits_.end()) - logits_.begin();
  for (const float temperature : {1e-45f, 1e-38f, 1e-20f}) {
    EXPECT_EQ(Draw(WithTemperature(temperature), logits_).token.token, best);
  }
}

TEST_F(SamplerTest, DrawsDependOnSeedSampleAndPositionAlone) {
  GenerateSpec generate = WithTemperature(1.0f);
  std::map<std::tuple<uint64_t, int, int>, TokenId> first;
  for (int pass = 0; pass < 2; ++pass) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      for (int sample = 0; sample < 4; ++sample) {
        for (int length = 1; length < 6; ++length) {
          generate.sampling.seed = seed;
          const std::vector<TokenId> history(length, 5);
          const TokenId token =
              Draw(generate, logits_, history, 1, sample, /*thread=*/pass).token.token;
          const auto [it, inserted] = first.try_emplace({seed, sample, length}, token);
          EXPECT_EQ(it->second, token);
        }
      }
    }
  }
  std::map<TokenId, int> distinct;
  for (const auto& [key, token] : first) ++distinct[token];
  EXPECT_GT(distinct.size(), 20u);
}

}  // namespace
}  // namespace skein
