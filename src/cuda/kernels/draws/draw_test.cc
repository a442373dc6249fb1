#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cuda/kernels/draws/draw_args.h"
#include "cuda/kernels/launches.h"
#include "kernels/kernels.h"
#include "runtime/sampler.h"
#include "testing/cuda_launch.h"

namespace skein::cuda {
namespace {

using testing::ExpectSameInAnyOrder;
using testing::RandomValues;
using testing::Range;
using testing::RunOnce;
using testing::SameBits;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

enum Kind {
  kPlain,
  kWide,     // a few tokens have nearly all of the weight
  kExtreme,  // with denormals and large numbers
  kTies,
  kEqual,
  kSomeLowest,
  kOneCandidate,
  kNumFinite,
  kOneNaN = kNumFinite,
  kOneInfinity,
  kAllLowest,
  kNumKinds
};

std::vector<float> Logits(RandomValues& random, int32_t n, int kind) {
  std::vector<float> x =
      random.Floats(n, DType::kF32, kind == kExtreme ? Range::kExtreme : Range::kPlain);
  for (float& e : x) {
    if (kind == kWide) e *= 4.0f;
    if (kind == kTies) e = std::round(2.0f * e) / 2.0f;
    if (kind == kEqual) e = -1.5f;
    if (kind == kSomeLowest && random.Integer(0, 2) > 0) e = -kInfinity;
    if (kind == kOneCandidate || kind == kAllLowest) e = -kInfinity;
  }
  float& any = x[random.Integer(0, n - 1)];
  if (kind == kSomeLowest || kind == kOneCandidate) any = 0.25f;
  if (kind == kOneNaN) any = kNaN;
  if (kind == kOneInfinity) any = kInfinity;
  return x;
}

// Rows of logits of one vocabulary, and their draws on the emulator.
class Draws {
 public:
  explicit Draws(int32_t vocab) : vocab_(vocab), ldx_(vocab + 3) {}

  void Add(const std::vector<float>& logits, const SamplingParams& params) {
    logits_.insert(logits_.end(), logits.begin(), logits.end());
    logits_.resize(logits_.size() + ldx_ - vocab_, kNaN);
    GenerateSpec& generate = generates_.emplace_back();
    generate.sampling = params;
    const std::vector<TokenId> history = {1};
    const std::optional<RandomDraw> draw = Sampler::RandomDrawOf({&generate, 0, history, 1});
    if (!draw) {
      draws_.emplace_back();
      return;
    }
    const auto random = static_cast<uint64_t>(draw->random * 0x1p53);
    draws_.push_back({draw->temperature, draw->top_k, draw->top_p, draw->min_p,
                      static_cast<uint32_t>(random), static_cast<uint32_t>(random >> 32)});
  }
  // With this random number, in units of 2^-53.
  void SetRandom(int row, uint64_t random) {
    draws_[row].random_low = static_cast<uint32_t>(random);
    draws_[row].random_high = static_cast<uint32_t>(random >> 32);
  }

  void Run(bool in_any_order) {
    rows_.resize(draws_.size());
    best_.assign(num_rows() * num_groups(), 7.0f);
    sums_.assign(num_rows() * num_groups(), 7.0);
    RunOnce(FindLargestLaunch({.x = logits_.data(),
                               .ldx = ldx_,
                               .num_rows = num_rows(),
                               .width = vocab_,
                               .out = rows_.data()}));
    const DrawArgs args = {.logits = logits_.data(),
                           .ldx = ldx_,
                           .draws = draws_.data(),
                           .num_rows = num_rows(),
                           .vocab = vocab_,
                           .rows = rows_.data(),
                           .best = best_.data(),
                           .sums = sums_.data()};
    if (!in_any_order) {
      RunOnce(WeighGroupsLaunch(args));
      weighed_ = sums_;
      RunOnce(DrawLaunch(args));
      return;
    }
    ExpectSameInAnyOrder(WeighGroupsLaunch(args), std::span(sums_));
    ExpectSameInAnyOrder(WeighGroupsLaunch(args), std::span(best_));
    weighed_ = sums_;
    // Draw changes the sums, too: one order after the other.
    std::vector<RowLargest> found;
    for (const TurnOrder& order : testing::TurnOrders()) {
      std::vector<RowLargest> rows = rows_;
      sums_ = weighed_;
      DrawArgs of_order = args;
      of_order.rows = rows.data();
      Emulator emulator(order);
      const Status status = RunEmulated(DrawLaunch(of_order), emulator);
      ASSERT_TRUE(status.ok()) << status.message();
      if (found.empty()) found = rows;
      for (size_t i = 0; i < rows.size(); ++i) {
        ASSERT_EQ(rows[i].index, found[i].index) << i;
        ASSERT_EQ(rows[i].left_to_host, found[i].left_to_host) << i;
      }
    }
    rows_ = found;
  }

  int32_t num_rows() const { return static_cast<int32_t>(draws_.size()); }
  int32_t num_groups() const { return NumDrawGroups(vocab_); }
  const float* logits(int row) const { return &logits_[row * ldx_]; }
  const GenerateSpec& generate(int row) const { return generates_[row]; }
  const RowDraw& draw(int row) const { return draws_[row]; }
  const RowLargest& result(int row) const { return rows_[row]; }
  const float* best(int row) const { return &best_[row * num_groups()]; }
  const double* weighed(int row) const { return &weighed_[row * num_groups()]; }

 private:
  const int32_t vocab_, ldx_;
  std::vector<float> logits_;
  std::vector<GenerateSpec> generates_;
  std::vector<RowDraw> draws_;
  std::vector<RowLargest> rows_;
  std::vector<float> best_;
  std::vector<double> sums_, weighed_;
};

// The processor, in the class of the emulator's products. Draws have one definition for all.
std::unique_ptr<Kernels> ProcessorKernels() { return MakeKernels(Isa::kScalar).value(); }

// Expects the sampler's tokens. Returns how many rows were left to the host.
int ExpectSampledTokens(const Draws& draws, int32_t vocab) {
  const auto kernels = ProcessorKernels();
  Sampler sampler(kernels.get(), vocab, 1);
  int num_left = 0;
  for (int i = 0; i < draws.num_rows(); ++i) {
    const SamplingParams& params = draws.generate(i).sampling;
    const std::vector<TokenId> history = {1};
    DrawResult expected;
    sampler.Draw({&draws.generate(i), 0, history, 1}, draws.logits(i), 0, &expected);
    EXPECT_EQ(draws.result(i).finite != 0, expected.finite) << i;
    num_left += draws.result(i).left_to_host;
    if (draws.result(i).left_to_host != 0 || !expected.finite) continue;
    EXPECT_EQ(draws.result(i).index, expected.token.token)
        << "vocab " << vocab << ", row " << i << ", temperature " << params.temperature
        << ", top_k " << params.top_k << ", top_p " << params.top_p << ", min_p " << params.min_p
        << ", seed " << params.seed;
  }
  return num_left;
}

constexpr float kTemperatures[] = {1.0f, 0.7f, 2.5f, 1e-20f, 0.0f};
constexpr int32_t kTopKs[] = {0, 1, 3, 20, 700, 100000};
constexpr float kTopPs[] = {1.0f, 0.95f, 0.5f, 1e-6f, 0x1.fffffep-1f};
constexpr float kMinPs[] = {0.0f, 0.02f, 0.4f, 1.0f};

template <typename T, size_t kSize>
T AnyOf(RandomValues& random, const T (&values)[kSize]) {
  return values[random.Integer(0, static_cast<int32_t>(kSize) - 1)];
}

SamplingParams AnyParams(RandomValues& random) {
  SamplingParams params;
  params.temperature = AnyOf(random, kTemperatures);
  params.top_k = AnyOf(random, kTopKs);
  params.top_p = AnyOf(random, kTopPs);
  params.min_p = AnyOf(random, kMinPs);
  params.seed = static_cast<uint64_t>(random.Integer(0, 1 << 30));
  return params;
}

TEST(DrawKernels, GroupsAreWeighedAsOnTheProcessor) {
  RandomValues random;
  const auto kernels = ProcessorKernels();
  for (const int32_t vocab : {1, 15, 17, 255, 256, 257, 1000, 4099}) {
    Draws draws(vocab);
    for (int kind = 0; kind < kNumFinite; ++kind) {
      for (const int32_t top_k : {0, 5}) {
        SamplingParams params;
        params.temperature = AnyOf(random, {1.0f, 0.6f, 1e-10f});
        params.top_k = top_k;
        draws.Add(Logits(random, vocab, kind), params);
      }
    }
    draws.Run(/*in_any_order=*/vocab <= 1000);
    for (int i = 0; i < draws.num_rows(); ++i) {
      const size_t groups = draws.num_groups();
      std::vector<float> weights(vocab), group_max(groups), best(groups, 0.0f);
      std::vector<double> sums(groups);
      const Kernels::Largest largest =
          kernels->FindLargest(draws.logits(i), vocab, group_max.data());
      EXPECT_EQ(draws.result(i).value, largest.max);
      if (draws.draw(i).top_k > 0) {
        EXPECT_TRUE(std::equal(group_max.begin(), group_max.end(), draws.best(i))) << vocab;
        continue;
      }
      kernels->Weigh(draws.logits(i), largest.max, draws.draw(i).temperature, vocab, weights.data(),
                     sums.data());
      for (int32_t id = 0; id < vocab; ++id) {
        best[id / kDrawGroup] = std::max(best[id / kDrawGroup], weights[id]);
      }
      EXPECT_TRUE(std::equal(best.begin(), best.end(), draws.best(i))) << vocab << " " << i;
      EXPECT_TRUE(std::equal(sums.begin(), sums.end(), draws.weighed(i))) << vocab << " " << i;
    }
  }
}

TEST(DrawKernels, EveryCombinationDrawsTheSamplersToken) {
  RandomValues random;
  constexpr int32_t kVocab = 1100;
  for (const int kind : {kPlain, kTies}) {
    Draws draws(kVocab);
    for (const float temperature : {1.0f, 0.4f, 2.0f}) {
      for (const int32_t top_k : kTopKs) {
        for (const float top_p : kTopPs) {
          for (const float min_p : kMinPs) {
            SamplingParams params;
            params.temperature = temperature;
            params.top_k = top_k;
            params.top_p = top_p;
            params.min_p = min_p;
            params.seed = static_cast<uint64_t>(random.Integer(0, 1 << 30));
            draws.Add(Logits(random, kVocab, kind), params);
          }
        }
      }
    }
    draws.Run(/*in_any_order=*/false);
    // All tokens of the row may be candidates.
    EXPECT_EQ(ExpectSampledTokens(draws, kVocab), 0);
  }
}

TEST(DrawKernels, RowsOfEveryKindDrawTheSamplersToken) {
  RandomValues random;
  for (const int32_t vocab : {1, 2, 16, 31, 255, 256, 257, 513, 2048, 5003, 33001}) {
    Draws draws(vocab);
    for (int kind = 0; kind < kNumKinds; ++kind) {
      for (int i = 0; i < (vocab > 10000 ? 6 : 12); ++i) {
        draws.Add(Logits(random, vocab, kind), AnyParams(random));
      }
    }
    draws.Run(/*in_any_order=*/false);
    const int num_left = ExpectSampledTokens(draws, vocab);
    if (vocab <= kMaxCandidates) {
      EXPECT_EQ(num_left, 0) << vocab;
    } else {
      EXPECT_GT(num_left, 0) << vocab;
      EXPECT_LT(num_left, draws.num_rows() / 2) << vocab;
    }
  }
}

TEST(DrawKernels, TheOrderOfTurnsChangesNoToken) {
  RandomValues random;
  for (const int32_t vocab : {3, 300, 2500}) {
    Draws draws(vocab);
    for (int kind = 0; kind < kNumKinds; ++kind) {
      for (int i = 0; i < 4; ++i) draws.Add(Logits(random, vocab, kind), AnyParams(random));
    }
    draws.Run(/*in_any_order=*/true);
    ExpectSampledTokens(draws, vocab);
  }
}

// With equal weights and a sum that random numbers divide, each target is a sum, whose token is the
// one behind it.
TEST(DrawKernels, ATargetThatIsASumTakesTheNextToken) {
  constexpr int32_t kVocab = 1024;
  SamplingParams plain, cut;
  cut.min_p = 0.5f;
  const std::vector<float> logits(kVocab, 3.0f);
  Draws draws(kVocab);
  const std::vector<int32_t> tokens = {0, 1, 255, 256, 257, 511, 512, 1023};
  for (const SamplingParams& params : {plain, cut}) {
    for (const int32_t token : tokens) {
      draws.Add(logits, params);
      draws.SetRandom(draws.num_rows() - 1, static_cast<uint64_t>(token) << 43);
      // The next smaller number.
      draws.Add(logits, params);
      const uint64_t before = token == 0 ? 0 : (static_cast<uint64_t>(token) << 43) - 1;
      draws.SetRandom(draws.num_rows() - 1, before);
    }
  }
  draws.Run(/*in_any_order=*/false);
  for (int i = 0; i < draws.num_rows(); ++i) {
    const int32_t token = tokens[i / 2 % tokens.size()];
    EXPECT_EQ(draws.result(i).index, i % 2 == 0 ? token : std::max(0, token - 1)) << i;
  }
}

// Equal logits have no bound: with top_k, top_p or min_p all of them are candidates.
TEST(DrawKernels, RowsWithTooManyCandidatesAreLeftToTheHost) {
  for (const int32_t vocab : {kMaxCandidates, kMaxCandidates + 1}) {
    const std::vector<float> logits(vocab, 1.0f);
    Draws draws(vocab);
    SamplingParams plain, top_k, top_p, min_p, all;
    top_k.top_k = 5;
    top_p.top_p = 0.5f;
    min_p.min_p = 0.1f;
    all.top_k = vocab;
    for (const SamplingParams& params : {plain, top_k, top_p, min_p, all}) {
      draws.Add(logits, params);
    }
    draws.Run(/*in_any_order=*/false);
    ExpectSampledTokens(draws, vocab);
    for (int i = 0; i < draws.num_rows(); ++i) {
      const bool left = i > 0 && vocab > kMaxCandidates;
      EXPECT_EQ(draws.result(i).left_to_host, left ? 1 : 0) << vocab << " " << i;
    }
  }
}

}  // namespace
}  // namespace skein::cuda
