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
#include "kernels/cpu/attention/attention_power_body.h"
#include "kernels/cpu/dot_tile_body.h"
// This body must come after the tiles.
#include "kernels/cpu/bf16_dot_body.h"

namespace skein {
namespace {

// The attention walk of one call with the steps D. Keys and values of a step stay in the
// second-level cache for all rows.
template <class D>
class Bf16AttentionWalk : public PowerWalk<Bf16AttentionWalk<D>> {
 public:
  explicit Bf16AttentionWalk(const AttentionArgs& args) : Base(args, Base::kMaxQStride) {
    if constexpr (kWidens) {
      for (int32_t r = 0; r < args.num_rows; ++r) {
        for (int32_t d = 0; d < args.head_dim; d += 32) {
          WidenBf16(q_ + r * Base::kMaxQStride + d, wide_q_ + r * kWideQStride + d);
        }
      }
    }
  }

  void Steps(int32_t first, int32_t last, int32_t begin, int32_t end) {
    const int32_t num_units = (last - first + kUnitRows - 1) / kUnitRows;
    const int32_t unit_rows = (last - first + num_units - 1) / num_units;
    for (int32_t step = begin; step < end; step += kKeysPerAmxStep) {
      for (int32_t row = first; row < last; row += unit_rows) {
        const int32_t rows = last - row < unit_rows ? last - row : unit_rows;
        const Item item = this->ItemAt(row, rows, step, 0);
        const int32_t next = step + kKeysPerAmxStep;
        const bool prefetches = rows <= kFewWalkRows && next < end;
        Step(item, prefetches ? this->ItemAt(row, rows, next, 0) : item, step == begin);
      }
    }
  }

 private:
  using Base = PowerWalk<Bf16AttentionWalk<D>>;
  using Item = typename Base::Item;
  using Base::args_, Base::q_, Base::num_panels_, Base::stride_;
  using Base::kBlocksPerStep, Base::kBlockScores, Base::kUnitRows, Base::kVecRows;

  // Whether tiles read queries and weights in f32.
  static constexpr bool kWidens = D::kTileTermBytes == 4;
  // Both strides of queries are an odd number of cache lines, which spreads the rows over the sets
  // of the first-level cache.
  static constexpr int64_t kWideQStride = kMaxHeadDim + 16;
  using QBytes =
      std::integral_constant<int64_t, kWidens ? kWideQStride * 4 : Base::kMaxQStride * 2>;
  using WeightBytes = std::integral_constant<int64_t, kKvBlockTokens * D::kTileTermBytes>;

  // `next`: the step to prefetch, or the item itself. `first`: no step before has prefetched this
  // one's keys.
  void Step(const Item& item, const Item& next, bool first) {
    if (item.num_blocks == 0 && !item.fresh) return;  // a state that begins here is made empty
    const int32_t most = RowsPerDotTile<D>(item.rows);
    for (int32_t r = 0; r < item.rows; r += most) {
      WithConstant<D::kMostRows>(item.rows - r < most ? item.rows - r : most, [&](auto rows) {
        for (int32_t b = 0; b < item.num_blocks; ++b) {
          AddScores<decltype(rows)::value>(item, r, b, first);
        }
      });
    }
    for (int32_t b = 0; b < item.num_blocks; ++b) this->FinishScores(item, b);
    for (int32_t r = 0; r < item.rows; ++r) this->FindLargest(item, r);
    alignas(64) float shift[kUnitRows], factor[kUnitRows];
    for (int32_t half = 0; half < item.rows; half += kVecRows) {
      this->MoveMaxima(item, half, shift, factor);
    }
    for (int32_t b = 0; b < item.num_blocks; ++b) {
      for (int32_t r = 0; r < item.rows; ++r) Weigh(item, b, r, shift[r]);
    }
    this->Rescale(item, factor);
    for (int32_t r = 0; r < item.rows; r += most) {
      WithConstant<D::kMostRows>(item.rows - r < most ? item.rows - r : most, [&](auto rows) {
        constexpr int R = decltype(rows)::value, kPanels = D::MostPanels(R);
        for (int32_t p = 0; p < num_panels_; p += kPanels) {
          const int32_t left = num_panels_ - p;
          WithConstant<kPanels>(left < kPanels ? left : kPanels, [&](auto panels) {
            AddValues<R, decltype(panels)::value>(item, next, r, p);
          });
        }
      });
    }
  }

  void Weigh(const Item& item, int32_t block, int32_t r, float shift) {
    Base::Weigh(item, block, r, shift);
    if constexpr (kWidens) {
      const int32_t at = block * kBlockScores + r * kKvBlockTokens;
      WidenBf16(item.weights + at, wide_weights_ + at);
    }
  }

  const std::byte* QueryAt(int32_t row) const {
    const void* q = q_ + row * Base::kMaxQStride;
    if constexpr (kWidens) q = wide_q_ + row * kWideQStride;
    return static_cast<const std::byte*>(q);
  }
  // The weights of item row r for the keys of a block.
  const std::byte* WeightsAt(const Item& item, int32_t block, int32_t r) const {
    const int32_t at = block * kBlockScores + r * kKvBlockTokens;
    const void* weights = item.weights + at;
    if constexpr (kWidens) weights = wide_weights_ + at;
    return static_cast<const std::byte*>(weights);
  }

  // Computes q · k, not scaled yet, for R rows of the item and the keys of one block.
  template <int R>
  void AddScores(const Item& item, int32_t row, int32_t block, bool first) {
    const std::byte* keys[2] = {item.blocks[block], item.blocks[block] + args_.k_bytes / 2};
    float* scores = this->Scores(block) + row * kKvBlockTokens;
    DotSums<D, R, 2> sums;
    LoadSums<D, R, 2>(scores, kKvBlockTokens, /*fresh=*/true, sums);
    // Few rows wait for memory. So the block's values are prefetched while its keys are multiplied,
    // and in the first step the next block's keys as well, all in halves.
    const std::byte* next = item.blocks[block + 1 < item.num_blocks ? block + 1 : block];
    const std::byte* ahead[4] = {keys[0] + args_.k_bytes, keys[1] + args_.k_bytes, next,
                                 next + args_.k_bytes / 2};
    const std::byte* const q = QueryAt(item.row + row);
    const int32_t num_groups = (args_.head_dim + 1) / 2;
    if constexpr (R > kFewWalkRows) {
      AddGroups<D, R, 2>(q, QBytes(), keys, nullptr, 0, num_groups, sums);
    } else if (first) {
      AddGroups<D, R, 2, 4>(q, QBytes(), keys, ahead, kGroupBytes, num_groups, sums);
    } else {
      AddGroups<D, R, 2>(q, QBytes(), keys, ahead, kGroupBytes, num_groups, sums);
    }
    StoreSums<D, R, 2>(sums, scores, kKvBlockTokens);
  }

  // acc += weights * V for R rows of the item and P panels of V. Few rows prefetch the next step's
  // keys meanwhile: as many bytes as they read.
  template <int R, int P>
  void AddValues(const Item& item, const Item& next, int32_t row, int32_t panel) {
    constexpr int32_t kPairs = kKvBlockTokens / 2;
    float* acc = this->StateAt(item.step).acc + (item.row + row) * stride_ + panel * kPanelCols;
    DotSums<D, R, P> sums;
    LoadSums<D, R, P>(acc, stride_, item.fresh, sums);
    for (int32_t b = 0; b < item.num_blocks; ++b) {
      const std::byte *values[P], *ahead[P];
      for (int p = 0; p < P; ++p) {
        const int64_t offset = (panel + p) * (kPairs * kGroupBytes);
        values[p] = item.blocks[b] + args_.k_bytes + offset;
        ahead[p] = (b < next.num_blocks ? next : item).blocks[b] + offset;
      }
      AddGroups<D, R, P>(WeightsAt(item, b, row), WeightBytes(), values,
                         R <= kFewWalkRows ? ahead : nullptr, kGroupBytes, kPairs, sums);
    }
    StoreSums<D, R, P>(sums, acc, stride_);
  }

  // With kWidens: the queries, and the weights of a step. About 100 KB.
  alignas(64) float wide_q_[kWidens ? kMaxQueryRows * kWideQStride : 16];
  alignas(64) float wide_weights_[kWidens ? kBlocksPerStep * kBlockScores : 16];
};

}  // namespace

void Avx512Bf16Attention(const AttentionArgs& args) {
  Bf16AttentionWalk<Bf16Dot> walk(args);
  walk.Run();
}

void Avx512Bf16FmaAttention(const AttentionArgs& args) {
  Bf16AttentionWalk<Bf16Fmas<true>> walk(args);
  walk.Run();
}

}  // namespace skein
