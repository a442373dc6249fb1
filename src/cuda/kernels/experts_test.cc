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
using testing::RandomGroups;
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
    const int32_t ldl = num_experts + random.Integer(1, 3);  // the last is the shared expert's
    const std::vector<float> logits = LogitsWithTies(random, num_tokens * ldl);
    ModelConfig config;
    config.num_experts = num_experts;
    config.experts_per_token = mixture.per_token;
    config.norm_expert_weights = mixture.norm_weights;
    ExpertRoutes routes(config, num_tokens);
    const size_t num_slots = size_t(num_tokens) * mixture.per_token;
    std::vector<int32_t> experts(num_slots, -7), expected_experts;
    std::vector<float> weights(num_slots), expected_weights, scratch(num_experts);
    std::vector<float> shared(num_tokens), expected_shared;
    for (int32_t token = 0; token < num_tokens; ++token) {
      const ScopedFpMode fp_mode;
      routes.Choose(token, &logits[token * ldl], scratch.data(), *kernels);
      const double gate = logits[token * ldl + ldl - 1];
      expected_shared.push_back(static_cast<float>(1 / (1 + std::exp(-gate))));
      for (const ExpertRoutes::Route& route : routes.routes(token)) {
        expected_experts.push_back(route.expert);
        expected_weights.push_back(route.weight);
      }
    }
    const Launch launch = ChooseExpertsLaunch({.logits = logits.data(),
                                               .ldl = ldl,
                                               .num_tokens = num_tokens,
                                               .num_experts = num_experts,
                                               .per_token = mixture.per_token,
                                               .norm_weights = mixture.norm_weights,
                                               .experts = experts.data(),
                                               .weights = weights.data(),
                                               .shared_weights = shared.data(),
                                               .shared_logit = ldl - 1});
    ExpectSameInAnyOrder(launch, std::span(weights));
    EXPECT_EQ(experts, expected_experts) << num_experts;
    EXPECT_TRUE(SameBits(weights, expected_weights)) << num_experts;
    EXPECT_TRUE(SameBits(shared, expected_shared)) << num_experts;
  }
}

// Numbers of experts stay valid, and distinct.
TEST(Experts, LogitsThatAreNoNumbersChooseSomeExperts) {
  const int32_t num_experts = 40, per_token = 5;
  const std::vector<float> logits(num_experts, std::numeric_limits<float>::quiet_NaN());
  std::vector<int32_t> experts(per_token, -7);
  std::vector<float> weights(per_token);
  testing::RunOnce(ChooseExpertsLaunch({.logits = logits.data(),
                                        .ldl = num_experts,
                                        .num_tokens = 1,
                                        .num_experts = num_experts,
                                        .per_token = per_token,
                                        .experts = experts.data(),
                                        .weights = weights.data()}));
  EXPECT_EQ(experts, (std::vector<int32_t>{0, 1, 2, 3, 4}));
  for (const float weight : weights) EXPECT_TRUE(std::isnan(weight));
}

TEST(Experts, SlotsAreListedInOrder) {
  RandomValues random;
  for (const int32_t num_slots : {1, 31, 32, 33, 150, 256, 257, 1100, 2048, 2500}) {
    const int32_t num_experts = 6, capacity = num_slots;
    std::vector<int32_t> experts(num_slots), counts(num_experts, -1);
    for (int32_t& expert : experts) expert = random.Integer(0, 4);  // the last one has none
    std::vector<int32_t> slots(num_experts * capacity, -1), expected = slots;
    const auto lists = testing::ListSlots(experts, num_experts);
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

TEST(Experts, ResultsAreAddedByAscendingNumberAndTheSharedOneLast) {
  RandomValues random;
  const int32_t num_tokens = 4, per_token = 3, width = 150, stride = 161;
  const auto floats = [&](int32_t count) {
    return random.Floats(count, DType::kF32, Range::kPlain);
  };
  const std::vector<float> out = floats(num_tokens * per_token * stride);
  const std::vector<float> weights = floats(num_tokens * per_token);
  const std::vector<float> shared = floats(num_tokens * stride);
  const std::vector<float> shared_weights = floats(num_tokens);
  for (const bool has_shared : {false, true}) {
    std::vector<float> x = floats(num_tokens * stride), expected = x;
    for (int32_t i = 0; i < num_tokens * stride; ++i) {
      if (i % stride >= width) continue;  // columns of other ranks
      const ScopedFpMode fp_mode;
      for (int32_t k = 0; k < per_token; ++k) {
        const int32_t slot = i / stride * per_token + k;
        expected[i] = expected[i] + weights[slot] * out[slot * stride + i % stride];
      }
      if (has_shared) expected[i] = expected[i] + shared_weights[i / stride] * shared[i];
    }
    ExpectSameInAnyOrder(SumExpertsLaunch({.out = out.data(),
                                           .weights = weights.data(),
                                           .shared = has_shared ? shared.data() : nullptr,
                                           .shared_weights = shared_weights.data(),
                                           .num_tokens = num_tokens,
                                           .per_token = per_token,
                                           .width = width,
                                           .stride = stride,
                                           .x = x.data()}),
                         std::span(x));
    EXPECT_TRUE(SameBits(x, expected)) << has_shared;
  }
}

// Matrices of many experts, one behind the other, and rows.
struct GroupedOperands {
  GroupedOperands(RandomValues& random, DType compute, DType matrix, const RandomGroups& groups,
                  bool of_tokens, int32_t num_experts)
      : num_rows(groups.num_rows(of_tokens)),
        k(random.Integer(20, 200)),
        w(num_experts * kColumns, k, matrix),
        a(random.Floats(size_t(num_rows) * PaddedWidth(k, compute), compute, Range::kPlain),
          compute),
        bias(random.Floats(num_experts * kColumns, DType::kF32, Range::kPlain)) {
    const std::vector<float> rows =
        random.Floats(size_t(w.n()) * k, matrix == DType::kBf16 ? matrix : compute, Range::kPlain);
    w.PackRows(0, w.n(), TypedArray(rows, compute).data(), compute);
    args = {.a = a.data(),
            .lda = PaddedWidth(k, compute) * static_cast<int64_t>(SizeOf(compute)) / 4,
            .w = w.panel(0),
            .bias = bias.data(),
            .m = num_rows,
            .columns = kColumns,
            .words = static_cast<int32_t>(w.k_padded() * SizeOf(matrix) / 4)};
    if (matrix != DType::kInt8) return;
    const int64_t width = PaddedWidth(k, matrix);
    q.assign(num_rows * width, 0);
    scales.resize(num_rows);
    testing::RunOnce(QuantizeLaunch(compute, {.x = a.data(),
                                              .ldx = PaddedWidth(k, compute),
                                              .num_rows = num_rows,
                                              .width = k,
                                              .out = q.data(),
                                              .ldo = width,
                                              .scales = scales.data()}));
    args.a = q.data();
    args.lda = width / 4;
    args.a_scales = scales.data();
    args.w_scales = w.scales();
  }

  // The arguments of one expert's product of one row.
  GemmArgs Alone(int32_t expert, int32_t row) const {
    GemmArgs alone = args;
    alone.a = static_cast<const uint32_t*>(args.a) + row * args.lda;
    alone.w = w.panel(expert * kPanels);
    alone.bias = &bias[expert * kColumns];
    if (args.a_scales != nullptr) alone.a_scales = &scales[row];
    if (args.w_scales != nullptr) alone.w_scales = w.scales() + expert * kColumns;
    alone.m = 1;
    return alone;
  }

  static constexpr int32_t kPanels = 4, kColumns = kPanels * kPanelCols;
  int32_t num_rows, k;
  PackedWeight w;  // [experts * kColumns, k]
  TypedArray a;
  std::vector<float> bias;
  std::vector<int8_t> q;
  std::vector<float> scales;
  GemmArgs args;
};

// Rows of many experts against the products of each alone: as many slots as rows of a, and a row of
// a for several slots; few rows and many; all experts, and all but the first.
TEST(Experts, GroupedProductsHaveTheBitsOfSingleOnes) {
  RandomValues random;
  const int32_t num_experts = 4;
  for (const testing::ProductTypes& types : testing::kProductTypes) {
    for (const bool few : {true, false}) {
      for (const bool gates : {false, true}) {
        const RandomGroups groups(random, num_experts, few ? 7 : 3 * kFewGroupedRows, 2);
        const int32_t columns = gates ? 30 : 62, ldo = columns + 2, first = few ? 0 : 1;
        const GroupedOperands operands(random, types.compute, types.matrix, groups, gates,
                                       num_experts);
        GemmArgs args = operands.args;
        args.columns = columns;
        args.up_panel = 2;
        args.ldo = ldo;
        const DType out_type = gates ? types.compute : DType::kF32;
        const GemmOutput output = gates ? GemmOutput::kGated : GemmOutput::kStore;
        const std::vector<float> before(size_t(groups.num_slots()) * ldo, 3.0f);
        TypedArray out(before, out_type), expected(before, out_type);
        args.out = out.At(0);
        args.groups = groups.Groups(GroupedOperands::kPanels, gates);
        args.groups.first_group = first;
        args.groups.num_groups -= first;
        const Launch launch = GroupedGemmLaunch(types.matrix, output, types.compute,
                                                few ? 1 : groups.num_slots() * 4, args);
        const std::span memory(static_cast<std::byte*>(out.At(0)),
                               before.size() * SizeOf(out_type));
        few ? ExpectSameInAnyOrder(launch, memory) : testing::RunOnce(launch);
        for (int32_t slot = 0; slot < groups.num_slots(); ++slot) {
          if (groups.expert(slot) < first) continue;
          GemmArgs alone = operands.Alone(groups.expert(slot), groups.row(slot, gates));
          alone.columns = columns;
          alone.up_panel = 2;
          alone.out = expected.At(size_t(slot) * ldo);
          alone.ldo = ldo;
          testing::RunOnce(GemmLaunch(types.matrix, output, types.compute, alone));
        }
        EXPECT_TRUE(SameBits(out.Values(), expected.Values()))
            << NameOf(types.compute) << " " << NameOf(types.matrix) << few << gates;
      }
    }
  }
}

}  // namespace
}  // namespace skein::cuda
