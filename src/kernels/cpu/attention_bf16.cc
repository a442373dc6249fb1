// The attention walk of the BF16 class (docs/numerics.md), which uses vdpbf16ps. avx512.cc explains
// the order of includes.

// g++ 12 warns of deliberately undefined inputs inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include "kernels/cpu/ops.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")

#include "kernels/cpu/vec_avx512.h"
// These bodies must come after the vector type that they use.
#include "kernels/cpu/attention_power_body.h"
#include "kernels/cpu/bf16_dot_body.h"
#include "kernels/cpu/dot_tile_body.h"

namespace skein {
namespace {

// The attention walk of one call. Keys and values of a step stay in the second-level cache for all
// rows.
class Bf16AttentionWalk : public PowerWalk<Bf16AttentionWalk> {
 public:
  explicit Bf16AttentionWalk(const AttentionArgs& args) : PowerWalk(args, kMaxQStride) {}

  void Steps(int32_t first, int32_t last, int32_t begin, int32_t end) {
    const int32_t num_units = (last - first + kUnitRows - 1) / kUnitRows;
    const int32_t unit_rows = (last - first + num_units - 1) / num_units;
    for (int32_t step = begin; step < end; step += kKeysPerAmxStep) {
      for (int32_t row = first; row < last; row += unit_rows) {
        Step(ItemAt(row, last - row < unit_rows ? last - row : unit_rows, step, 0));
      }
    }
  }

 private:
  // kMaxQStride is an odd number of cache lines, which spreads the rows over the sets of the
  // first-level cache.
  using QBytes = std::integral_constant<int64_t, kMaxQStride * 2>;
  using WeightBytes = std::integral_constant<int64_t, kKvBlockTokens * 2>;
  static constexpr int kFewRows = 8;

  void Step(const Item& item) {
    if (item.num_blocks == 0 && !item.fresh) return;  // a state that begins here is made empty
    const int32_t most = RowsPerDotTile(item.rows);
    for (int32_t r = 0; r < item.rows; r += most) {
      WithConstant<kMostTileRows>(item.rows - r < most ? item.rows - r : most, [&](auto rows) {
        for (int32_t b = 0; b < item.num_blocks; ++b) AddScores<decltype(rows)::value>(item, r, b);
      });
    }
    for (int32_t b = 0; b < item.num_blocks; ++b) FinishScores(item, b);
    for (int32_t r = 0; r < item.rows; ++r) FindLargest(item, r);
    alignas(64) float shift[kUnitRows], factor[kUnitRows];
    for (int32_t half = 0; half < item.rows; half += kVecRows) {
      MoveMaxima(item, half, shift, factor);
    }
    for (int32_t b = 0; b < item.num_blocks; ++b) {
      for (int32_t r = 0; r < item.rows; ++r) Weigh(item, b, r, shift[r]);
    }
    Rescale(item, factor);
    for (int32_t r = 0; r < item.rows; r += most) {
      WithConstant<kMostTileRows>(item.rows - r < most ? item.rows - r : most, [&](auto rows) {
        constexpr int R = decltype(rows)::value;
        for (int32_t p = 0; p < num_panels_; p += MostPanels(R)) {
          const int32_t left = num_panels_ - p;
          WithConstant<MostPanels(R)>(
              left < MostPanels(R) ? left : MostPanels(R),
              [&](auto panels) { AddValues<R, decltype(panels)::value>(item, r, p); });
        }
      });
    }
  }

  // Computes q · k, not scaled yet, for R rows of the item and the keys of one block.
  template <int R>
  void AddScores(const Item& item, int32_t row, int32_t block) {
    const std::byte* keys[2] = {item.blocks[block], item.blocks[block] + args_.k_bytes / 2};
    const auto* q = reinterpret_cast<const std::byte*>(q_ + (item.row + row) * kMaxQStride);
    float* scores = Scores(block) + row * kKvBlockTokens;
    DotSums<Bf16Dot, R, 2> sums;
    LoadSums<Bf16Dot, R, 2>(scores, kKvBlockTokens, /*fresh=*/true, sums);
    // Few rows wait for memory. So the block's values and the next block's keys are prefetched
    // while its keys are multiplied, both in halves.
    const std::byte* next = item.blocks[block + 1 < item.num_blocks ? block + 1 : block];
    const std::byte* ahead[4] = {keys[0] + args_.k_bytes, keys[1] + args_.k_bytes, next,
                                 next + args_.k_bytes / 2};
    AddGroups<Bf16Dot, R, 2, 4>(q, QBytes(), keys, R <= kFewRows ? ahead : nullptr, kGroupBytes,
                                (args_.head_dim + 1) / 2, sums);
    StoreSums<Bf16Dot, R, 2>(sums, scores, kKvBlockTokens);
  }

  // acc += weights * V for R rows of the item and P panels of V.
  template <int R, int P>
  void AddValues(const Item& item, int32_t row, int32_t panel) {
    constexpr int32_t kPairs = kKvBlockTokens / 2;
    float* acc = StateAt(item.step).acc + (item.row + row) * stride_ + panel * kPanelCols;
    DotSums<Bf16Dot, R, P> sums;
    LoadSums<Bf16Dot, R, P>(acc, stride_, item.fresh, sums);
    for (int32_t b = 0; b < item.num_blocks; ++b) {
      const std::byte* values[P];
      for (int p = 0; p < P; ++p) {
        values[p] = item.blocks[b] + args_.k_bytes + (panel + p) * (kPairs * kGroupBytes);
      }
      const uint16_t* weights = item.weights + b * kBlockScores + row * kKvBlockTokens;
      AddGroups<Bf16Dot, R, P>(reinterpret_cast<const std::byte*>(weights), WeightBytes(), values,
                               nullptr, 0, kPairs, sums);
    }
    StoreSums<Bf16Dot, R, P>(sums, acc, stride_);
  }
};

}  // namespace

void Avx512Bf16Attention(const AttentionArgs& args) {
  Bf16AttentionWalk walk(args);
  walk.Run();
}

}  // namespace skein
