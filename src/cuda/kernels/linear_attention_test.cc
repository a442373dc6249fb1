// Compares the kernels of linear layers with their definitions, bit for bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/fp_mode.h"
#include "cuda/kernels/launches.h"
#include "kernels/reference.h"
#include "testing/cuda_launch.h"

namespace skein::cuda {
namespace {

using testing::ExpectSameInAnyOrder;
using testing::RandomValues;
using testing::Range;
using testing::SameBits;
using testing::TypedArray;

constexpr DType kOutputTypes[] = {DType::kF32, DType::kBf16};
constexpr int32_t kNoSlot = -1;

// Rows of a batch. Tokens of no row lie between some of them.
struct RowList {
  int32_t NewSlot() { return num_slots++; }
  // Each snapshot gets a slot of its own.
  void Add(RandomValues& random, int32_t tokens, int32_t from, int32_t to,
           const std::vector<int32_t>& snapshots) {
    num_tokens += random.Integer(0, 1);
    StateRow row = {num_tokens, tokens, from, to};
    for (size_t i = 0; i < snapshots.size(); ++i) row.snapshots[i] = {NewSlot(), snapshots[i]};
    rows.push_back(row);
    num_tokens += tokens;
  }

  std::vector<StateRow> rows;
  int32_t num_tokens = 0, num_slots = 0;
};

// States in slots that lie apart, behind the other floats that a kernel writes.
class StateMemory {
 public:
  StateMemory(RandomValues& random, std::vector<float> written, int64_t state_floats,
              int32_t num_slots)
      : floats(std::move(written)),
        slot_floats(state_floats + 4 * random.Integer(0, 2)),
        first_(floats.size()) {
    const std::vector<float> states =
        random.Floats(num_slots * slot_floats, DType::kF32, Range::kPlain);
    floats.insert(floats.end(), states.begin(), states.end());
  }

  // Calls take(t, state) for each token of the row. `state` has `size` floats, which begin `offset`
  // floats behind the slot's first. Keeps them where the row says.
  template <class Take>
  void Walk(const StateRow& row, int64_t offset, int64_t size, const Take& take) {
    std::vector<float> state(size, 0.0f);
    if (row.from >= 0) std::copy_n(Slot(row.from) + offset, size, state.begin());
    for (int32_t t = 0; t < row.num_tokens; ++t) {
      take(row.first_token + t, state.data());
      for (const StateRow::Snapshot& snapshot : row.snapshots) {
        if (snapshot.slot < 0 || snapshot.tokens != t + 1) continue;
        std::ranges::copy(state, Slot(snapshot.slot) + offset);
      }
    }
    if (row.to >= 0) std::ranges::copy(state, Slot(row.to) + offset);
  }
  float* Slot(int32_t slot) { return floats.data() + first_ + slot * slot_floats; }

  std::vector<float> floats;
  int64_t slot_floats;

 private:
  size_t first_;
};

// Sums of b and a: plain ones, those of denormal gates, and those whose exponential overflows.
std::vector<float> SumsOfGates(RandomValues& random, int32_t count) {
  std::vector<float> sums = random.Floats(count, DType::kF32, Range::kExtreme);
  for (float& sum : sums) {
    const int32_t kind = random.Integer(0, 7);
    if (kind == 0) sum = sum * 30;
    if (kind == 1) sum = static_cast<float>(random.Integer(-110, -80));
    if (kind == 2) sum = random.Integer(0, 1) == 0 ? 1000.0f : -1000.0f;
  }
  return sums;
}

TEST(LinearKernels, GatesHaveTheProcessorsBits) {
  RandomValues random;
  for (const int32_t num_heads : {1, 5, 32}) {
    const int32_t num_tokens = random.Integer(5, 30), ldx = 2 * num_heads + random.Integer(0, 3);
    const std::vector<float> x = SumsOfGates(random, num_tokens * ldx);
    const std::vector<float> dt_bias = random.Floats(num_heads, DType::kF32, Range::kPlain);
    std::vector<double> rates;
    for (int32_t h = 0; h < num_heads; ++h) rates.push_back(std::exp(random.Float(Range::kPlain)));
    std::vector<float> gates((num_tokens + 1) * num_heads * 4, 7.0f), expected = gates;
    const auto softplus = [](double v) {
      return v > 0 ? v + std::log1p(std::exp(-v)) : std::log1p(std::exp(v));
    };
    for (int32_t i = 0; i < num_tokens * num_heads; ++i) {
      const ScopedFpMode fp_mode;
      const int32_t h = i % num_heads;
      const float* const sums = &x[i / num_heads * ldx + h];
      const double step = softplus(double{sums[num_heads]} + double{dt_bias[h]});
      const float decay = static_cast<float>(std::exp(-rates[h] * step));
      const float beta = static_cast<float>(1 / (1 + std::exp(-double{sums[0]})));
      std::ranges::copy(std::vector<float>{decay, beta, 0.0f, 0.0f}, &expected[4 * i]);
    }
    ExpectSameInAnyOrder(DeltaGatesLaunch({.x = x.data(),
                                           .ldx = ldx,
                                           .rates = rates.data(),
                                           .dt_bias = dt_bias.data(),
                                           .num_tokens = num_tokens,
                                           .num_heads = num_heads,
                                           .gates = gates.data()}),
                         std::span(gates));
    EXPECT_TRUE(SameBits(gates, expected)) << num_heads;
  }
}

// Heads of q, k and v.
struct HeadShape {
  int32_t num_k_heads, num_v_heads, k_dim, v_dim;
  bool tiled_v_heads = false;

  int32_t k_width() const { return num_k_heads * k_dim; }
  int32_t v_width() const { return num_v_heads * v_dim; }
  int32_t width() const { return 2 * k_width() + v_width(); }
};

// Rows of less than a tile of the convolution and of several tiles, from zeros and from slots.
RowList ConvRows(RandomValues& random) {
  RowList list;
  const int32_t shared = list.NewSlot();  // several rows start from it
  for (const int32_t tokens : {1, 2, 3, 70}) {
    list.Add(random, tokens, kNoSlot, kNoSlot, {});
    list.Add(random, tokens, kNoSlot, list.NewSlot(), {1});
    list.Add(random, tokens, shared, kNoSlot, {tokens});
    list.Add(random, tokens, shared, list.NewSlot(), {});
    const int32_t slot = list.NewSlot();
    std::vector<int32_t> snapshots = {1, 2, 3, 32, 33, 34, 64, 70};
    std::erase_if(snapshots, [&](int32_t at) { return at > tokens; });
    list.Add(random, tokens, slot, slot, snapshots);
  }
  return list;
}

std::vector<ConvTile> TilesOf(const RowList& list) {
  std::vector<ConvTile> tiles;
  for (size_t row = 0; row < list.rows.size(); ++row) {
    const int32_t num_tokens = list.rows[row].num_tokens;
    for (int32_t first = 0; first < num_tokens; first += kConvTileTokens) {
      const int32_t count = std::min(kConvTileTokens, num_tokens - first);
      tiles.push_back({static_cast<int32_t>(row), first, count});
    }
  }
  return tiles;
}

// Computes each head by the definition: its results at `memory`'s begin, and its states.
void ExpectConv(const HeadShape& shape, const RowList& list, const float* x, int64_t ldx,
                const float* weight, StateMemory* memory) {
  const int32_t num_qk = 2 * shape.num_k_heads;
  int32_t column = 0;
  for (int32_t head = 0; head < num_qk + shape.num_v_heads; ++head) {
    const int32_t n = head < num_qk ? shape.k_dim : shape.v_dim;
    for (const StateRow& row : list.rows) {
      const auto take = [&](int64_t token, float* state) {
        float* const out = &memory->floats[token * shape.width() + column];
        std::copy_n(x + token * ldx + column, n, out);
        reference::Conv({out, n, 1, n, weight + column, shape.width(), state});
      };
      memory->Walk(row, int64_t{kConvWidth - 1} * column, int64_t{kConvWidth - 1} * n, take);
    }
    column += n;
  }
}

TEST(LinearKernels, ConvolutionHasTheProcessorsBits) {
  RandomValues random;
  for (const HeadShape& shape :
       {HeadShape{1, 1, 4, 32}, HeadShape{2, 3, 20, 32}, HeadShape{1, 2, 128, 64}}) {
    for (const Range range : {Range::kPlain, Range::kExtreme}) {
      const RowList list = ConvRows(random);
      const std::vector<ConvTile> tiles = TilesOf(list);
      const int32_t width = shape.width();
      const int64_t ldx = width + random.Integer(0, 5);
      const std::vector<float> x = random.Floats(list.num_tokens * ldx, DType::kF32, range);
      const std::vector<float> weight = random.Floats(kConvWidth * width, DType::kF32, range);
      StateMemory memory(random, std::vector<float>(list.num_tokens * width, 7.0f),
                         int64_t{kConvWidth - 1} * width, list.num_slots);
      StateMemory expected = memory;
      ExpectConv(shape, list, x.data(), ldx, weight.data(), &expected);
      const ConvArgs args = {.x = x.data(),
                             .ldx = ldx,
                             .rows = list.rows.data(),
                             .tiles = tiles.data(),
                             .num_rows = static_cast<int32_t>(list.rows.size()),
                             .num_tiles = static_cast<int32_t>(tiles.size()),
                             .weight = weight.data(),
                             .width = width,
                             .k_width = shape.k_width(),
                             .k_dim = shape.k_dim,
                             .v_dim = shape.v_dim,
                             .states = memory.Slot(0),
                             .slot_floats = memory.slot_floats,
                             .out = memory.floats.data()};
      ExpectSameInAnyOrder(ConvLaunch(args), std::span(memory.floats));
      ExpectSameInAnyOrder(StoreConvStatesLaunch(args), std::span(memory.floats));
      EXPECT_TRUE(SameBits(memory.floats, expected.floats)) << width;
    }
  }
}

TEST(LinearKernels, HeadsGetTheProcessorsLengths) {
  RandomValues random;
  for (const int32_t k_dim : {4, 16, 20, 128, 256}) {
    for (const Range range : {Range::kPlain, Range::kExtreme}) {
      const int32_t num_k_heads = random.Integer(1, 3), num_tokens = random.Integer(1, 7);
      const int32_t ldx = 2 * num_k_heads * k_dim + random.Integer(0, 5);
      const float eps = 1e-6f / static_cast<float>(k_dim), q_gain = 0.3f, k_gain = 0.7f;
      // The rows behind are not normed.
      std::vector<float> x = random.Floats((num_tokens + 2) * ldx, DType::kF32, range);
      std::vector<float> expected = x;
      for (int32_t i = 0; i < num_tokens * 2 * num_k_heads; ++i) {
        const int32_t head = i % (2 * num_k_heads);
        const std::vector<float> gain(k_dim, head < num_k_heads ? q_gain : k_gain);
        float* const of_head = &expected[i / (2 * num_k_heads) * ldx + head * k_dim];
        reference::RmsNorm({of_head, size_t(k_dim)}, gain.data(), eps, of_head);
      }
      ExpectSameInAnyOrder(ScaleLinearHeadsLaunch({.x = x.data(),
                                                   .ldx = ldx,
                                                   .num_tokens = num_tokens,
                                                   .num_k_heads = num_k_heads,
                                                   .k_dim = k_dim,
                                                   .eps = eps,
                                                   .q_gain = q_gain,
                                                   .k_gain = k_gain}),
                           std::span(x));
      EXPECT_TRUE(SameBits(x, expected)) << k_dim;
    }
  }
}

// Rows around the number of tokens that a block copies at a time.
RowList DeltaRows(RandomValues& random) {
  RowList list;
  const int32_t shared = list.NewSlot(), own = list.NewSlot();
  list.Add(random, 1, kNoSlot, kNoSlot, {});
  list.Add(random, 33, own, own, {1, 8, 32});
  list.Add(random, 8, shared, list.NewSlot(), {8});
  list.Add(random, 9, shared, kNoSlot, {9});
  list.Add(random, 16, kNoSlot, list.NewSlot(), {});
  list.Add(random, 17, kNoSlot, kNoSlot, {1, 2, 3, 7, 8, 9, 16, 17});
  const int32_t of_one = list.NewSlot();
  list.Add(random, 1, of_one, of_one, {1});
  const int32_t tokens = random.Integer(2, 33);
  list.Add(random, tokens, shared, list.NewSlot(), {random.Integer(1, tokens)});
  return list;
}

// Queries and keys of about unit length, so that states stay finite. `range`: that of v.
std::vector<float> DeltaOperands(RandomValues& random, const HeadShape& shape, int32_t num_tokens,
                                 int64_t ldx, Range range) {
  std::vector<float> x = random.Floats(num_tokens * ldx, DType::kF32, Range::kPlain);
  for (int64_t i = 0; i < std::ssize(x); ++i) {
    const bool is_qk = i % ldx < 2 * shape.k_width();
    x[i] = is_qk ? x[i] / std::sqrt(static_cast<float>(shape.k_dim)) : random.Float(range);
  }
  return x;
}

// Computes each kDeltaCols columns of v by the definition, in x at `memory`'s begin.
void ExpectDelta(const HeadShape& shape, const RowList& list, int64_t ldx,
                 const std::vector<float>& gates, StateMemory* memory) {
  const int64_t size = int64_t{shape.k_dim} * kDeltaCols;
  for (int32_t part = 0; part < shape.v_width() / kDeltaCols; ++part) {
    const int32_t head = part * kDeltaCols / shape.v_dim;
    const int32_t k_head = shape.tiled_v_heads ? head % shape.num_k_heads
                                               : head / (shape.num_v_heads / shape.num_k_heads);
    for (const StateRow& row : list.rows) {
      const auto take = [&](int64_t token, float* state) {
        float* const q = &memory->floats[token * ldx + k_head * shape.k_dim];
        float* const v = &memory->floats[token * ldx + 2 * shape.k_width() + part * kDeltaCols];
        const float* const gate = &gates[4 * (token * shape.num_v_heads + head)];
        reference::Delta(
            {state, q, q + shape.k_width(), v, &gate[0], &gate[1], ldx, 1, shape.k_dim});
      };
      memory->Walk(row, part * size, size, take);
    }
  }
}

void CheckDelta(RandomValues& random, const HeadShape& shape, Range range) {
  const RowList list = DeltaRows(random);
  const int64_t ldx = shape.width() + 4 * random.Integer(0, 2);
  std::vector<float> gates(list.num_tokens * shape.num_v_heads * 4);
  for (float& gate : gates) gate = 1 / (1 + std::exp(random.Float(Range::kPlain)));
  StateMemory memory(random, DeltaOperands(random, shape, list.num_tokens, ldx, range),
                     int64_t{shape.k_dim} * shape.v_width(), list.num_slots);
  StateMemory expected = memory;
  ExpectDelta(shape, list, ldx, gates, &expected);
  ExpectSameInAnyOrder(DeltaLaunch({.x = memory.floats.data(),
                                    .ldx = ldx,
                                    .gates = gates.data(),
                                    .rows = list.rows.data(),
                                    .num_rows = static_cast<int32_t>(list.rows.size()),
                                    .num_k_heads = shape.num_k_heads,
                                    .num_v_heads = shape.num_v_heads,
                                    .k_dim = shape.k_dim,
                                    .v_dim = shape.v_dim,
                                    .tiled_v_heads = shape.tiled_v_heads,
                                    .states = memory.Slot(0),
                                    .slot_floats = memory.slot_floats}),
                       std::span(memory.floats));
  EXPECT_TRUE(SameBits(memory.floats, expected.floats))
      << shape.k_dim << " " << shape.v_dim << " " << shape.tiled_v_heads;
}

TEST(LinearKernels, DeltaRuleHasTheProcessorsBits) {
  RandomValues random;
  for (const int32_t k_dim : {16, 128, 256}) {
    CheckDelta(random, {2, 4, k_dim, 32, false}, Range::kPlain);
    CheckDelta(random, {2, 4, k_dim, 32, true}, Range::kExtreme);
    CheckDelta(random, {1, 2, k_dim, 64, false}, Range::kExtreme);
  }
  CheckDelta(random, {2, 4, 20, 64, true}, Range::kPlain);
  CheckDelta(random, {3, 3, 4, 64, false}, Range::kPlain);
}

TEST(LinearKernels, NormsAreGatedAsOnTheProcessor) {
  RandomValues random;
  constexpr float kEps = 1e-6f;
  for (const DType dtype : kOutputTypes) {
    for (const int32_t v_dim : {32, 48, 128}) {
      const Range range = v_dim == 48 ? Range::kExtreme : Range::kPlain;
      const int32_t num_heads = random.Integer(1, 3), num_tokens = random.Integer(1, 7);
      const int32_t width = num_heads * v_dim;
      const int32_t ldv = width + random.Integer(0, 5), ldz = width + random.Integer(0, 5);
      const int32_t ldo = width + random.Integer(0, 5);
      const std::vector<float> v = random.Floats(num_tokens * ldv, DType::kF32, range);
      const std::vector<float> z = random.Floats(num_tokens * ldz, DType::kF32, range);
      const std::vector<float> weight = random.Floats(v_dim, DType::kF32, Range::kPlain);
      std::vector<float> expected((num_tokens + 1) * ldo, 7.0f);
      TypedArray out(expected, dtype);
      for (int32_t i = 0; i < num_tokens * num_heads; ++i) {
        const int32_t token = i / num_heads, column = i % num_heads * v_dim;
        std::vector<float> normed(v_dim);
        reference::RmsNorm({&v[token * ldv + column], size_t(v_dim)}, weight.data(), kEps,
                           normed.data());
        reference::SiluMul({&z[token * ldz + column], size_t(v_dim)}, normed.data(),
                           &expected[token * ldo + column]);
      }
      ExpectSameInAnyOrder(
          GatedNormLaunch(dtype, {.v = v.data(),
                                  .ldv = ldv,
                                  .z = z.data(),
                                  .ldz = ldz,
                                  .weight = weight.data(),
                                  .eps = kEps,
                                  .num_tokens = num_tokens,
                                  .num_heads = num_heads,
                                  .v_dim = v_dim,
                                  .out = out.At(0),
                                  .ldo = ldo}),
          std::span(static_cast<std::byte*>(out.At(0)), expected.size() * SizeOf(dtype)));
      EXPECT_TRUE(SameBits(out.Values(), TypedArray(expected, dtype).Values())) << v_dim;
    }
  }
}

TEST(LinearKernels, AttentionIsGatedAsOnTheProcessor) {
  RandomValues random;
  for (const DType dtype : kOutputTypes) {
    for (const int32_t width : {1, 30, 128, 1030, 4096}) {
      for (const Range range : {Range::kPlain, Range::kExtreme}) {
        const int32_t num_rows = random.Integer(1, 4), ldx = width + random.Integer(0, 5);
        const std::vector<float> gate = random.Floats(num_rows * width, DType::kF32, range);
        std::vector<float> expected = random.Floats((num_rows + 1) * ldx, dtype, range);
        TypedArray x(expected, dtype);
        for (int32_t i = 0; i < num_rows; ++i) {
          reference::SigmoidMul({&gate[i * width], size_t(width)}, &expected[i * ldx]);
        }
        ExpectSameInAnyOrder(
            AttentionGateLaunch(dtype, {.gate = gate.data(),
                                        .num_rows = num_rows,
                                        .width = width,
                                        .x = x.At(0),
                                        .ldx = ldx}),
            std::span(static_cast<std::byte*>(x.At(0)), expected.size() * SizeOf(dtype)));
        EXPECT_TRUE(SameBits(x.Values(), TypedArray(expected, dtype).Values())) << width;
      }
    }
  }
}

}  // namespace
}  // namespace skein::cuda
