#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/fp_mode.h"
#include "cuda/kernels/launches.h"
#include "kernels/packed_weight.h"
#include "kernels/reference.h"
#include "model/forward/expert_routes.h"
#include "testing/cuda_launch.h"

namespace skein::cuda {
namespace {

using testing::ExpectSameInAnyOrder;
using testing::RandomValues;
using testing::Range;
using testing::SameBits;
using testing::TypedArray;

struct Mixture {
  int32_t num_experts, per_token;
  bool norm_weights;
};
constexpr Mixture kMixtures[] = {{8, 3, true},   {5, 1, false},  {4, 4, false},
                                 {33, 2, false}, {128, 8, true}, {70, 32, true}};

// Logits with many that are equal: the lowest number goes first.
std::vector<float> LogitsWithTies(RandomValues& random, int32_t count) {
  std::vector<float> logits = random.Floats(count, DType::kF32, Range::kPlain);
  for (float& logit : logits) {
    if (random.Integer(0, 1) == 0) logit = static_cast<float>(random.Integer(-2, 2)) * 0.5f;
    if (random.Integer(0, 9) == 0) logit = -0.0f;
  }
  return logits;
}

TEST(Experts, TheProcessorChoosesTheSame) {
  RandomValues random;
  const auto kernels = MakeKernels(Isa::kScalar).value();
  for (const Mixture& mixture : kMixtures) {
    const int32_t num_tokens = random.Integer(1, 21), num_experts = mixture.num_experts;
    const std::vector<float> logits = LogitsWithTies(random, num_tokens * num_experts);
    ModelConfig config;
    config.num_experts = num_experts;
    config.experts_per_token = mixture.per_token;
    config.norm_expert_weights = mixture.norm_weights;
    ExpertRoutes routes(config, num_tokens);
    const size_t num_slots = size_t(num_tokens) * mixture.per_token;
    std::vector<int32_t> experts(num_slots, -7), expected_experts;
    std::vector<float> weights(num_slots), expected_weights, scratch(num_experts);
    for (int32_t token = 0; token < num_tokens; ++token) {
      const ScopedFpMode fp_mode;
      routes.Choose(token, &logits[token * num_experts], scratch.data(), *kernels);
      for (const ExpertRoutes::Route& route : routes.routes(token)) {
        expected_experts.push_back(route.expert);
        expected_weights.push_back(route.weight);
      }
    }
    const Launch launch = ChooseExpertsLaunch({.logits = logits.data(),
                                               .num_tokens = num_tokens,
                                               .num_experts = num_experts,
                                               .per_token = mixture.per_token,
                                               .norm_weights = mixture.norm_weights,
                                               .experts = experts.data(),
                                               .weights = weights.data()});
    ExpectSameInAnyOrder(launch, std::span(weights));
    EXPECT_EQ(experts, expected_experts) << num_experts;
    EXPECT_TRUE(SameBits(weights, expected_weights)) << num_experts;
  }
}

// Numbers of experts stay valid, and distinct.
TEST(Experts, LogitsThatAreNoNumbersChooseSomeExperts) {
  const int32_t num_experts = 40, per_token = 5;
  const std::vector<float> logits(num_experts, std::numeric_limits<float>::quiet_NaN());
  std::vector<int32_t> experts(per_token, -7);
  std::vector<float> weights(per_token);
  testing::RunOnce(ChooseExpertsLaunch({.logits = logits.data(),
                                        .num_tokens = 1,
                                        .num_experts = num_experts,
                                        .per_token = per_token,
                                        .experts = experts.data(),
                                        .weights = weights.data()}));
  EXPECT_EQ(experts, (std::vector<int32_t>{0, 1, 2, 3, 4}));
  for (const float weight : weights) EXPECT_TRUE(std::isnan(weight));
}

// Slots by expert, ascending.
std::vector<std::vector<int32_t>> ListOf(const std::vector<int32_t>& experts, int32_t num_experts) {
  std::vector<std::vector<int32_t>> lists(num_experts);
  for (size_t slot = 0; slot < experts.size(); ++slot) {
    lists[experts[slot]].push_back(static_cast<int32_t>(slot));
  }
  return lists;
}

TEST(Experts, SlotsAreListedInOrder) {
  RandomValues random;
  for (const int32_t num_slots : {1, 31, 32, 33, 150, 256, 257, 1100, 2048, 2500}) {
    const int32_t num_experts = 6, capacity = num_slots;
    std::vector<int32_t> experts(num_slots), counts(num_experts, -1);
    for (int32_t& expert : experts) expert = random.Integer(0, 4);  // the last one has none
    std::vector<int32_t> slots(num_experts * capacity, -1), expected = slots;
    const auto lists = ListOf(experts, num_experts);
    for (int32_t expert = 0; expert < num_experts; ++expert) {
      std::ranges::copy(lists[expert], expected.begin() + expert * capacity);
    }
    ExpectSameInAnyOrder(ListSlotsLaunch({.experts = experts.data(),
                                          .num_slots = num_slots,
                                          .num_experts = num_experts,
                                          .counts = counts.data(),
                                          .slots = slots.data(),
                                          .capacity = capacity}),
                         std::span(slots));
    EXPECT_EQ(slots, expected);
    for (int32_t expert = 0; expert < num_experts; ++expert) {
      EXPECT_EQ(counts[expert], std::ssize(lists[expert]));
    }
  }
}

TEST(Experts, ResultsAreAddedByAscendingNumber) {
  RandomValues random;
  const int32_t num_tokens = 4, per_token = 3, width = 150, stride = 161;
  const std::vector<float> out =
      random.Floats(num_tokens * per_token * stride, DType::kF32, Range::kPlain);
  const std::vector<float> weights =
      random.Floats(num_tokens * per_token, DType::kF32, Range::kPlain);
  std::vector<float> x = random.Floats(num_tokens * stride, DType::kF32, Range::kPlain);
  std::vector<float> expected = x;
  for (int32_t i = 0; i < num_tokens * stride; ++i) {
    if (i % stride >= width) continue;  // columns of other ranks
    const ScopedFpMode fp_mode;
    for (int32_t k = 0; k < per_token; ++k) {
      const int32_t slot = i / stride * per_token + k;
      expected[i] = expected[i] + weights[slot] * out[slot * stride + i % stride];
    }
  }
  ExpectSameInAnyOrder(SumExpertsLaunch({.out = out.data(),
                                         .weights = weights.data(),
                                         .num_tokens = num_tokens,
                                         .per_token = per_token,
                                         .width = width,
                                         .stride = stride,
                                         .x = x.data()}),
                       std::span(x));
  EXPECT_TRUE(SameBits(x, expected));
}

// Rows of many experts against the products of each alone: as many slots as rows of a, and a row of
// a for several slots; few rows and many.
TEST(Experts, GroupedProductsHaveTheBitsOfSingleOnes) {
  RandomValues random;
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    for (const int32_t num_tokens : {7, 3 * kFewGroupedRows}) {
      const int32_t num_experts = 3, per_token = 2, n = 40, k = random.Integer(20, 70);
      const int32_t num_slots = num_tokens * per_token;
      const int64_t lda = PaddedWidth(k, dtype), ldo = n + 2;
      std::vector<uint8_t> weights;
      std::vector<PackedWeight> packed;
      for (int32_t expert = 0; expert < num_experts; ++expert) {
        const std::vector<float> w = random.Floats(size_t(n) * k, dtype, Range::kPlain);
        packed.emplace_back(n, k, dtype).PackRows(0, n, TypedArray(w, dtype).data(), dtype);
        const auto* bytes = reinterpret_cast<const uint8_t*>(packed.back().panel(0));
        weights.insert(weights.end(), bytes,
                       bytes + 48 * packed.back().k_padded() * static_cast<int64_t>(SizeOf(dtype)));
      }
      std::vector<float> rows(num_tokens * lda);
      for (int32_t i = 0; i < num_tokens; ++i) {
        const std::vector<float> row = random.Floats(k, dtype, Range::kPlain);
        std::ranges::copy(row, rows.begin() + i * lda);
      }
      const TypedArray a(rows, dtype);
      std::vector<int32_t> experts(num_slots);
      for (int32_t i = 0; i < num_slots; ++i) experts[i] = i % 7 == 0 ? 1 : i % per_token * 2;
      const auto lists = ListOf(experts, num_experts);
      const int32_t capacity = num_slots;
      std::vector<int32_t> counts(num_experts), slots(num_experts * capacity, -1);
      for (int32_t expert = 0; expert < num_experts; ++expert) {
        counts[expert] = static_cast<int32_t>(lists[expert].size());
        std::ranges::copy(lists[expert], slots.begin() + expert * capacity);
      }
      std::vector<float> out(num_slots * ldo, 3.0f), expected = out;
      GemmArgs args = {.a = a.data(),
                       .lda = lda * static_cast<int64_t>(SizeOf(dtype)) / 4,
                       .w = weights.data(),
                       .m = num_slots,
                       .columns = n,
                       .words = static_cast<int32_t>(packed[0].k_padded() * SizeOf(dtype) / 4),
                       .out = out.data(),
                       .ldo = ldo};
      args.groups = {.counts = counts.data(),
                     .slots = slots.data(),
                     .capacity = capacity,
                     .slots_per_row = per_token,
                     .num_groups = num_experts,
                     .weight_words = int64_t{48} * args.words};
      const Launch launch = GroupedGemmLaunch(dtype, GemmOutput::kStore, num_slots, args);
      num_tokens == 7 ? ExpectSameInAnyOrder(launch, std::span(out)) : testing::RunOnce(launch);
      for (int32_t slot = 0; slot < num_slots; ++slot) {
        GemmArgs alone = args;
        alone.groups = {};
        alone.a = a.At(slot / per_token * lda);
        alone.w = packed[experts[slot]].panel(0);
        alone.m = 1;
        alone.out = &expected[slot * ldo];
        testing::RunOnce(GemmLaunch(dtype, GemmOutput::kStore, DType::kF32, alone));
      }
      EXPECT_TRUE(SameBits(out, expected)) << NameOf(dtype) << " " << num_tokens;
    }
  }
}

}  // namespace
}  // namespace skein::cuda
