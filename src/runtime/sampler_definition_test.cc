// Draws, compared with the definition in docs/numerics.md ("Draws"), which is written here with
// complete sorts. Every instruction set draws the same tokens.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "base/fp_mode.h"
#include "base/random.h"
#include "kernels/kernels.h"
#include "kernels/reference.h"
#include "runtime/sampler.h"
#include "testing/isas.h"

namespace skein {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// A row of logits at a temperature.
struct PlainRow {
  PlainRow(const std::vector<float>& logits, float temperature)
      : weights(logits.size()),
        group_sums(NumRowGroups(static_cast<int32_t>(logits.size()))),
        by_logit(logits.size()) {
    const ScopedFpMode fp_mode;
    const float max = *std::max_element(logits.begin(), logits.end()) + 0.0f;
    reference::Weigh(logits, max, temperature, weights.data(), group_sums.data());
    std::iota(by_logit.begin(), by_logit.end(), 0);
    by_weight = by_logit;
    std::stable_sort(by_logit.begin(), by_logit.end(),
                     [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
    std::stable_sort(by_weight.begin(), by_weight.end(),
                     [&](TokenId a, TokenId b) { return weights[a] > weights[b]; });
  }

  // The sum of the kept weights, added in the order of the ids.
  double KeptSum(const std::vector<uint8_t>& kept) const {
    double sum = 0;
    for (size_t id = 0; id < kept.size(); ++id) sum += kept[id] ? double{weights[id]} : 0.0;
    return sum;
  }

  TokenId DrawOfAll(double random) const {
    const double target = random * std::accumulate(group_sums.begin(), group_sums.end(), 0.0);
    double before = 0;
    size_t group = 0;
    for (; before + group_sums[group] <= target; ++group) before += group_sums[group];
    TokenId last = -1;
    for (size_t i = group * kRowGroup; i < std::min((group + 1) * kRowGroup, weights.size()); ++i) {
      if (weights[i] == 0) continue;
      last = static_cast<TokenId>(i);
      before += weights[i];
      if (before > target) break;
    }
    return last;
  }

  TokenId Draw(const SamplingParams& p, double random) const {
    const ScopedFpMode fp_mode;
    if (p.top_k <= 0 && p.top_p >= 1 && p.min_p <= 0) return DrawOfAll(random);
    const size_t n = weights.size();
    std::vector<uint8_t> kept(n, true);
    double total = std::accumulate(group_sums.begin(), group_sums.end(), 0.0);
    if (p.top_k > 0) {
      for (size_t i = p.top_k; i < n; ++i) kept[by_logit[i]] = false;
      total = KeptSum(kept);
    }
    if (p.top_p < 1) {
      double sum = 0;
      for (const TokenId id : by_weight) {
        if (!kept[id]) continue;
        kept[id] = sum == 0 || sum < double{p.top_p} * total;  // keeps at least one
        if (kept[id]) sum += weights[id];
      }
    }
    for (size_t id = 0; id < n; ++id) kept[id] = kept[id] && weights[id] >= p.min_p;
    const double target = random * KeptSum(kept);
    double sum = 0;
    for (size_t id = 0; id < n; ++id) {
      if (!kept[id]) continue;
      sum += weights[id];
      if (sum > target) return static_cast<TokenId>(id);
    }
    return -1;
  }

  std::vector<float> weights;
  std::vector<double> group_sums;
  std::vector<TokenId> by_logit, by_weight;
};

class SamplerDefinitionTest : public ::testing::TestWithParam<Isa> {
 protected:
  enum Kind { kPeaked, kFlat, kWide, kTies, kEqual, kSomeLowest, kDenormal, kNumKinds };

  SamplerDefinitionTest() {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed_));
    random_.seed(seed_);
  }

  std::vector<float> Row(int32_t n, int kind) {
    std::normal_distribution<float> normal;
    std::vector<float> x(n);
    for (float& l : x) {
      l = normal(random_);
      if (kind == kPeaked) l *= 2.5f;
      if (kind == kWide) l *= 40;
      if (kind == kTies) l = static_cast<float>(random_() % 5);
      if (kind == kEqual) l = -7.25f;
      if (kind == kSomeLowest && random_() % 2 == 0) l = -kInf;
      if (kind == kDenormal) l = random_() % 4 == 0 ? 0.0f : l * 1e-39f;
    }
    if (kind == kPeaked) {
      for (int i = 0; i < 30; ++i) x[random_() % n] = 16 - 0.3f * static_cast<float>(i);
    }
    if (kind == kSomeLowest) x[random_() % n] = 0.5f;  // at least one logit is above -inf
    return x;
  }

  const uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_;
};

TEST_P(SamplerDefinitionTest, EveryCutDrawsWhatAWholeSortDraws) {
  const std::unique_ptr<Kernels> kernels = MakeKernels(GetParam()).value();
  for (const int32_t n : {1, 2, 17, 256, 257, 3000, 20000}) {
    Sampler sampler(kernels.get(), n, 1);
    for (int kind = 0; kind < kNumKinds; ++kind) {
      const std::vector<float> logits = Row(n, kind);
      const float temperature = std::vector{1.0f, 0.6f, 2.0f, 0.05f}[random_() % 4];
      const PlainRow plain(logits, temperature);
      GenerateSpec generate;
      generate.sampling.temperature = temperature;
      for (const int32_t top_k : {0, 1, 2, 5, 50, 1000, 100000}) {
        for (const float top_p : {1.0f, 0x1.fffffep-1f, 0.95f, 0.5f, 0.01f, 1e-9f, 1e-40f}) {
          for (const float min_p : {0.0f, 0.01f, 0.3f, 1.0f}) {
            generate.sampling.top_k = top_k;
            generate.sampling.top_p = top_p;
            generate.sampling.min_p = min_p;
            generate.sampling.seed = random_();
            const std::vector<TokenId> history = {0, 0};
            const DrawSpec spec = {&generate, 3, history, 1};
            DrawResult result;
            sampler.Draw(spec, logits.data(), 0, &result);
            ASSERT_TRUE(result.finite);
            ASSERT_EQ(result.token.token,
                      plain.Draw(generate.sampling, UniformAt(generate.sampling.seed, 3, 1)))
                << "vocabulary " << n << ", kind " << kind << ", temperature " << temperature
                << ", top_k " << top_k << ", top_p " << top_p << ", min_p " << min_p;
          }
        }
      }
    }
  }
}

// With a bias or forbidden tokens, the sampler works on its own copy of the row, in which weights
// replace logits.
TEST_P(SamplerDefinitionTest, ChangedLogitsAreCutAlike) {
  const std::unique_ptr<Kernels> kernels = MakeKernels(GetParam()).value();
  constexpr int32_t kVocab = 3000;
  Sampler sampler(kernels.get(), kVocab, 1);
  for (int kind = 0; kind < kNumKinds; ++kind) {
    const std::vector<float> logits = Row(kVocab, kind);
    GenerateSpec generate;
    generate.sampling.logit_bias = {{7, 3.5f}, {2999, -2.0f}, {300, 100.0f}};
    std::vector<float> changed = logits;
    {
      const ScopedFpMode fp_mode;
      for (const auto& [id, bias] : generate.sampling.logit_bias) changed[id] += bias;
    }
    const PlainRow plain(changed, 1.0f);
    for (const int32_t top_k : {0, 5, 1000}) {
      for (const float top_p : {1.0f, 0.9f}) {
        generate.sampling.top_k = top_k;
        generate.sampling.top_p = top_p;
        generate.sampling.seed = random_();
        const std::vector<TokenId> history = {0, 0};
        DrawResult result;
        sampler.Draw({&generate, 3, history, 1}, logits.data(), 0, &result);
        ASSERT_EQ(result.token.token,
                  plain.Draw(generate.sampling, UniformAt(generate.sampling.seed, 3, 1)))
            << "kind " << kind << ", top_k " << top_k << ", top_p " << top_p;
      }
    }
  }
}

TEST_P(SamplerDefinitionTest, LogprobsAreThoseOfAWholeSort) {
  const std::unique_ptr<Kernels> kernels = MakeKernels(GetParam()).value();
  for (const int32_t n : {1, 17, 257, 20000}) {
    Sampler sampler(kernels.get(), n, 1);
    for (int kind = 0; kind < kNumKinds; ++kind) {
      const std::vector<float> logits = Row(n, kind);
      const PlainRow plain(logits, 1.0f);
      for (const int32_t count : {0, 1, 5, 20, 79, 80, 1000}) {
        const auto token = static_cast<TokenId>(random_() % n);
        PromptLogprob result;
        ASSERT_TRUE(sampler.Logprob(token, count, logits.data(), 0, &result));
        const auto place = std::find(plain.by_logit.begin(), plain.by_logit.end(), token);
        ASSERT_EQ(result.chosen.rank, 1 + (place - plain.by_logit.begin())) << n << " " << kind;
        ASSERT_EQ(std::ssize(result.top_logprobs), std::min(count, n));
        for (int32_t i = 0; i < std::min(count, n); ++i) {
          ASSERT_EQ(result.top_logprobs[i].token, plain.by_logit[i]) << n << " " << kind;
          ASSERT_EQ(result.top_logprobs[i].rank, i + 1);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Here, SamplerDefinitionTest, ::testing::ValuesIn(IsasHere()),
                         testing::IsaName);

}  // namespace
}  // namespace skein
