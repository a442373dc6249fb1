#pragma once

// The products of the attention walk with keys and values in int8 (docs/numerics.md). math_body.h
// says how this file is used.

#include "kernels/cpu/attention/attention_body.h"
#include "kernels/cpu/gemm_blocks_body.h"

namespace skein {

// The scales of 16 keys: for every 32 dimensions, one of each key.
struct KeyScales {
  const float* p;
};
// Values have the scale 1: AddValues multiplies the weights by the values' scales beforehand.
struct UnitScales {};

template <class V, class Kind>
inline PanelBlock<V> BlockOf(const KeyScales& scales, int32_t b) {
  PanelBlock<V> block = {};
  block.scales[0] = V::Load(scales.p + 16 * b);
  return block;
}
template <class V, class Kind>
inline PanelBlock<V> BlockOf(const UnitScales& /*scales*/, int32_t /*b*/) {
  PanelBlock<V> block = {};
  block.scales[0] = V::Set(1.0f);
  return block;
}

// The products of a walk's rows with keys and values in int8, with the contract of FloatProducts.
// Queries and weights are rounded to int8, too, in blocks of 32. `B` is as in gemm_blocks_body.h.
template <class V, class B>
class Int8Products {
 public:
  explicit Int8Products(const AttentionArgs& args) : args_(args) {
    for (int32_t r = 0; r < args.num_rows; ++r) {
      for (int32_t d = 0; d < args.head_dim; d += kBlockTerms) {
        q_blocks_[r * kMostBlocks + d / kBlockTerms] = QuantizeBlock(
            LoadQ(args.rows[r], d), LoadQ(args.rows[r], d + 16), q_ + r * kMaxHeadDim + d);
      }
    }
  }

  int64_t group_bytes() const { return KvLayout::kInt8GroupBytesOfDim * args_.head_dim_padded; }

  void AddScores(int32_t row, int32_t count, const std::byte* const* groups, int num_groups,
                 float* p) const {
    const BlockRows rows = {q_ + row * kMaxHeadDim, kMaxHeadDim, q_blocks_ + row * kMostBlocks,
                            kMostBlocks};
    const int32_t d = args_.head_dim_padded;
    for (int g = 0; g < num_groups; ++g) {
      const auto* const scales = reinterpret_cast<const float*>(groups[g] + 16 * d);
      // Meanwhile the block's values are prefetched: the bytes two groups ahead.
      const BlockAhead ahead = BytesAhead(count, groups[g] + 2 * group_bytes(), d / kBlockTerms);
      AddBlocks(rows, count, groups[g], KeyScales{scales}, d / kBlockTerms, ahead, p + 16 * g,
                kKeysPerStep);
    }
  }

  static V Rounded(V weight) { return weight; }

  void AddValues(int32_t count, const float* weights, const std::byte* values, int32_t /*terms*/,
                 const std::byte* next, float* acc) const {
    alignas(64) int8_t q[kWalkRows * kKvBlockTokens];
    RowBlock blocks[kWalkRows];
    const auto* scales =
        reinterpret_cast<const float*>(values + kKvBlockTokens * args_.head_dim_padded);
    for (int32_t r = 0; r < count; ++r, weights += kKeysPerStep) {
      blocks[r] = QuantizeBlock(Scaled(weights, scales), Scaled(weights + 16, scales + 16),
                                q + r * kKvBlockTokens);
    }
    const BlockRows rows = {q, kKvBlockTokens, blocks, 1};
    // Meanwhile the next block's keys are prefetched.
    const int32_t panels = args_.head_dim_padded / 16;
    BlockAhead ahead = BytesAhead(count, next, panels / 2);
    for (int32_t d = 0; d < args_.head_dim; d += 16, ahead.p += ahead.step) {
      AddBlocks(rows, count, values + d * kKvBlockTokens, UnitScales(), 1, ahead, acc + d,
                args_.head_dim_padded);
    }
  }

 private:
  static constexpr int32_t kMostBlocks = kMaxHeadDim / kBlockTerms;

  // The elements d, d + 1, ... of a row's query (16, with zeros behind the last one).
  V LoadQ(const AttentionRow& row, int32_t d) const {
    const int32_t n = args_.head_dim - d < 16 ? args_.head_dim - d : 16;
    const int64_t index = PieceIndex(d, args_.piece_stride);
    if (n <= 0) return V::Set(0.0f);
    return args_.dtype == DType::kF32
               ? V::LoadFirst(static_cast<const float*>(row.q) + index, n)
               : V::LoadBf16First(static_cast<const uint16_t*>(row.q) + index, n);
  }

  // Weights times the scales of their values. A weight of 0 stays 0, since its key may not exist,
  // and the scale may be anything.
  static V Scaled(const float* weights, const float* scales) {
    const V weight = V::Load(weights), zero = V::Set(0.0f);
    return IfGreater(weight, zero, weight * V::Load(scales), zero);
  }

  // `parts` equal parts of the bytes of 16 keys at `p`. For more than few rows, and for null,
  // nothing is prefetched.
  BlockAhead BytesAhead(int32_t count, const std::byte* p, int32_t parts) const {
    if (count > kFewWalkRows || p == nullptr) return {};
    return {p, group_bytes() / parts};
  }

  // c[r] += rows[r] * values for `count` rows; values are `num_blocks` blocks of 16 columns.
  template <class Scales>
  static void AddBlocks(BlockRows rows, int32_t count, const std::byte* values,
                        const Scales& scales, int32_t num_blocks, const BlockAhead& ahead, float* c,
                        int64_t ldc) {
    constexpr int R = V::kBlockRows;
    constexpr int kMostDirect = V::kDirectByteRows < R ? V::kDirectByteRows : R;
    alignas(64) std::byte unpacked[kMostBlocks * kQuadsOfBlock * kQuadBytes];
    const bool direct = count <= V::kDirectByteRows;
    if (!direct) {
      for (int32_t i = 0; i < num_blocks * kQuadsOfBlock * kQuadBytes; i += kQuadBytes) {
        B::Store(B::FromOffset(B::Load(values + i)), unpacked + i);
      }
    }
    const int32_t most = direct ? kMostDirect : R;
    for (int32_t r = 0; r < count; r += most, c += most * ldc) {
      const int32_t tile_rows = count - r < most ? count - r : most;
      if (direct) {
        BlockTileOfRows<V, B, BlockKind<EightBits<B>, false, false>, kMostDirect>(
            tile_rows, rows, values, scales, num_blocks, ahead, c, ldc);
      } else {
        BlockTileOfRows<V, B, BlockKind<Unpacked<B, 8>, false, false>, R>(
            tile_rows, rows, unpacked, scales, num_blocks, ahead, c, ldc);
      }
      rows.q += most * rows.stride;
      rows.blocks += most * rows.block_stride;
    }
  }

  const AttentionArgs& args_;
  alignas(64) int8_t q_[kWalkRows * kMaxHeadDim];
  RowBlock q_blocks_[kWalkRows * kMostBlocks];
};

}  // namespace skein
