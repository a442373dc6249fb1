#pragma once

// Products with matrices that stay in blocks of 4 to 8 bits (docs/numerics.md, "Blocks: weights of
// 4 to 8 bits"). A block of 32 elements is one product of the tensor cores: its integer sum is
// exact, and joins the f32 sum of the output by its scales. Every output is one such chain over its
// blocks, whatever the tile.

#include <cstdint>

#include "base/block_format.h"
#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/gemm.h"
#include "cuda/kernels/math.h"
#include "cuda/kernels/products.h"
#include "cuda/kernels/rows.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline constexpr int kBlockWords = kBlockTerms / 4;  // of a row in int8
static_assert(kBlockWords == kMmaWords);
inline constexpr int kBlocksOfSuper = kSuperElements / kBlockTerms;

// Tiles of 16 rows in one warp: of few rows, and of many; a gated product has twice the sums.
template <GemmOutput kOutput>
inline constexpr int kManyBlockTiles = kOutput == GemmOutput::kGated ? 2 : 4;

inline constexpr int kBlockLanes = 4;  // that quantize a block of 32 elements
inline constexpr int kBlocksAtOnce = kRowThreads / kBlockLanes;

// Adjacent elements of a lane, which move at once.
template <typename T>
struct alignas(sizeof(T) == 1 ? 8 : 16) Eight {
  T of[kBlockTerms / kBlockLanes];
};

// Rounds each block of 32 elements to int8 with a scale of its own. Grid: rows, kBlocksAtOnce
// blocks.
template <typename T>
__global__ void QuantizeBlocksKernel(QuantizeArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  const int lane = static_cast<int>(threadIdx.x) % kBlockLanes, blocks = a.width / kBlockTerms;
  const int block =
      static_cast<int>(blockIdx.y) * kBlocksAtOnce + static_cast<int>(threadIdx.x) / kBlockLanes;
  const bool exists = block < blocks;  // otherwise the lane still takes part in sums
  const int64_t row = blockIdx.x;
  const int first = (exists ? block : 0) * kBlockTerms + lane * (kBlockTerms / kBlockLanes);
  const auto x =
      *reinterpret_cast<const Eight<T>*>(static_cast<const T*>(a.x) + row * a.ldx + first);
  float largest = 0.0f;
#pragma unroll
  for (const T value : x.of) largest = LargerMagnitude(largest, Widen(value));
#pragma unroll
  for (int distance = kBlockLanes / 2; distance > 0; distance /= 2) {
    largest = LargerMagnitude(largest, __shfl_xor_sync(kAllLanes, largest, distance));
  }
  const RowScale scale(largest);
  Eight<int8_t> q;
  int sum = 0;
#pragma unroll
  for (int e = 0; e < kBlockTerms / kBlockLanes; ++e) {
    q.of[e] = scale.Quantize(Widen(x.of[e]));
    sum += q.of[e];
  }
#pragma unroll
  for (int distance = kBlockLanes / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  }
  if (!exists) return;
  *reinterpret_cast<Eight<int8_t>*>(a.out + row * a.ldo + first) = q;
  if (lane >= 2) return;
  const float of_sum = scale.scale * static_cast<float>(sum);
  a.scales[2 * (row * blocks + block) + lane] = lane == 0 ? scale.scale : of_sum;
}

// An f16. The conversion is exact.
__device__ __forceinline__ float WidenHalf(uint32_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return __uint_as_float(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) {
    return __uint_as_float(sign | (exponent + 112) << 23 | mantissa << 13);
  }
  return __uint_as_float(sign | __float_as_uint(static_cast<float>(mantissa) * 0x1p-24f));
}

// Four entries of a codebook in one word.
constexpr uint32_t FourEntries(const int8_t* codebook) {
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word |= uint32_t{static_cast<uint8_t>(codebook[i])} << 8 * i;
  return word;
}

// Four values of 0 to 15, a byte each, by the codebook.
template <const int8_t* kCodebook>
__device__ __forceinline__ uint32_t LookUp(uint32_t u) {
  constexpr uint32_t kEntries[4] = {FourEntries(kCodebook), FourEntries(kCodebook + 4),
                                    FourEntries(kCodebook + 8), FourEntries(kCodebook + 12)};
  uint32_t values = 0;
#pragma unroll
  for (int shift = 0; shift < 32; shift += 8) {
    const uint32_t i = u >> shift & 15u;
    const uint32_t low = i < 4 ? kEntries[0] : kEntries[1];
    const uint32_t high = i < 12 ? kEntries[2] : kEntries[3];
    const uint32_t word = i < 8 ? low : high;
    values |= (word >> (8 * (i & 3u)) & 0xffu) << shift;
  }
  return values;
}

// The bytes of a block's values, of all columns.
__device__ __forceinline__ int ValueBytes(const PanelPlace& panel) {
  return panel.bits * kBlockTerms * kPanelColumns / 8;
}

// The four elements of column `column` that begin at row 4 * quad of a block, as four signed bytes.
// kernels/block_panel.cc fixes the layout of the bits in memory.
__device__ __forceinline__ uint32_t BlockWord(const uint8_t* block, const PanelPlace& panel,
                                              int quad, int column) {
  const uint32_t* words = reinterpret_cast<const uint32_t*>(block) + column;
  constexpr int kLowWords = 4 * kPanelColumns;
  if (panel.bits == 8) return words[quad * kPanelColumns] ^ 0x80808080u;
  uint32_t u = words[quad / 2 * kPanelColumns] >> (quad % 2 * 4) & 0x0f0f0f0fu;
  if (panel.codebook) {
    return panel.kind == BlockScales::kExponent ? LookUp<kMxfp4Codebook>(u)
                                                : LookUp<kIq4Codebook>(u);
  }
  if (panel.bits == 5) u |= (words[kLowWords] >> quad & 0x01010101u) << 4;
  if (panel.bits == 6) {
    const uint32_t high = words[kLowWords + quad / 4 * kPanelColumns];
    u |= (high >> (quad % 4 * 2) & 0x03030303u) << 4;
  }
  // Byte by byte, without a borrow from the next.
  return ((u | 0x80808080u) - panel.zero * 0x01010101u) ^ 0x80808080u;
}

// The scales of a column in one block.
struct ColumnScales {
  ColumnScales() = default;
  __device__ __forceinline__ ColumnScales(const uint8_t* scales, const PanelPlace& panel, int block,
                                          int column) {
    const auto half = [column](const uint8_t* from) {
      return WidenHalf(reinterpret_cast<const uint16_t*>(from)[column]);
    };
    const auto byte = [column](const uint8_t* from) { return static_cast<float>(from[column]); };
    const auto signed_byte = [column](const uint8_t* from) {
      return static_cast<float>(static_cast<int8_t>(from[column]));
    };
    constexpr int kHalves = 2 * kPanelColumns;  // bytes of an f16 of each column
    minimum = 0.0f;
    if (panel.kind == BlockScales::kHalf || panel.kind == BlockScales::kHalfMinimum) {
      const bool has_minimum = panel.kind == BlockScales::kHalfMinimum;
      const uint8_t* unit = scales + static_cast<int64_t>(block) * kHalves * (has_minimum ? 2 : 1);
      low = high = half(unit);
      if (has_minimum) minimum = half(unit + kHalves);
      return;
    }
    if (panel.kind == BlockScales::kHalfZero) {
      const uint8_t* unit = scales + static_cast<int64_t>(block) * (kHalves + kPanelColumns);
      low = high = half(unit);
      minimum = (0.0f - low) * byte(unit + kHalves);
      return;
    }
    if (panel.kind == BlockScales::kExponent) {
      const uint32_t e = scales[static_cast<int64_t>(block) * kPanelColumns + column];
      low = high = __uint_as_float(e < 2 ? 0u : (e - 1) << 23);
      return;
    }
    const int head = panel.kind == BlockScales::kSuperMinimum ? 2 * kHalves : kHalves;
    const int row = panel.kind == BlockScales::kSuper ? kPanelColumns : 2 * kPanelColumns;
    const uint8_t* unit =
        scales + static_cast<int64_t>(block / kBlocksOfSuper) * (head + kBlocksOfSuper * row);
    const uint8_t* small = unit + head + block % kBlocksOfSuper * row;
    const float d = half(unit);
    if (panel.kind == BlockScales::kSuperMinimum) {
      low = high = d * byte(small);
      minimum = (0.0f - half(unit + kHalves)) * byte(small + kPanelColumns);
      return;
    }
    low = high = d * signed_byte(small);
    if (panel.kind == BlockScales::kSuperHalves) high = d * signed_byte(small + kPanelColumns);
  }

  float low, high;  // of 16 elements each
  float minimum;
};

__device__ __forceinline__ bool HasMinimum(const PanelPlace& panel) {
  return panel.kind == BlockScales::kHalfMinimum || panel.kind == BlockScales::kHalfZero ||
         panel.kind == BlockScales::kSuperMinimum;
}

// A warp's view of one panel of w: a lane multiplies with columns group and group + 8, and has the
// sums of columns 2 quad, 2 quad + 1, and those plus 8.
struct BlockPanelOfWarp {
  __device__ __forceinline__ BlockPanelOfWarp(const GemmArgs& args, int index)
      : panel(args.places[index]),
        values(static_cast<const uint8_t*>(args.w) + panel.values),
        scales(static_cast<const uint8_t*>(args.w) + panel.scales) {}

  __device__ __forceinline__ void Load(int block, const Lane& lane) {
    const uint8_t* at = values + static_cast<int64_t>(block) * ValueBytes(panel);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int column = lane.group + 8 * half;
      words[half][0] = BlockWord(at, panel, lane.quad, column);
      words[half][1] = BlockWord(at, panel, lane.quad + 4, column);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        of_sums[half][i] = ColumnScales(scales, panel, block, 8 * half + 2 * lane.quad + i);
      }
    }
  }

  PanelPlace panel;
  const uint8_t* values;
  const uint8_t* scales;
  uint32_t words[2][2];
  ColumnScales of_sums[2][2];
};

// The rows of a that a lane multiplies in a tile of 16: group and group + 8. Those of a group's
// product are looked up once for all blocks.
template <bool kGrouped>
struct RowsOfLane {
  RowsOfLane() = default;
  __device__ __forceinline__ RowsOfLane(const BlockRows<kGrouped>& rows, int64_t first_row,
                                        const Lane& lane)
      : first(first_row + lane.group), count(rows.count) {
    if constexpr (kGrouped) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int64_t row = first + 8 * i;
        looked_up[i] = row < count ? static_cast<int32_t>(rows.In(row)) : -1;
      }
    }
  }
  __device__ __forceinline__ bool Exists(int i) const {
    if constexpr (kGrouped) return looked_up[i] >= 0;
    return first + 8 * i < count;
  }
  __device__ __forceinline__ int64_t Row(int i) const {
    if constexpr (kGrouped) return looked_up[i];
    return first + 8 * i;
  }

  int64_t first;
  int count;
  int32_t looked_up[2];
};

// The rows of a warp's tile of 16, at one block.
struct BlockRowsOfWarp {
  template <bool kGrouped>
  __device__ __forceinline__ BlockRowsOfWarp(const GemmArgs& args, const RowsOfLane<kGrouped>& rows,
                                             int block, const Lane& lane) {
    const auto* a = static_cast<const uint32_t*>(args.a);
    const int64_t blocks = args.words / kBlockWords;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int64_t row = rows.Row(i);
      const bool exists = rows.Exists(i);
      const uint32_t* of_row = a + row * args.lda + block * kBlockWords;
      words[i] = exists ? of_row[lane.quad] : 0u;
      words[2 + i] = exists ? of_row[lane.quad + 4] : 0u;
      const float* of_block = args.a_scales + 2 * (row * blocks + block);
      scale[i] = exists ? of_block[0] : 0.0f;
      scaled_sum[i] = exists ? of_block[1] : 0.0f;
    }
  }

  uint32_t words[4];
  float scale[2], scaled_sum[2];
};

// Adds one block to the sums of 16 rows and 16 columns.
__device__ __forceinline__ void AddBlock(const BlockRowsOfWarp& rows,
                                         const BlockPanelOfWarp& columns, float (&sums)[2][4]) {
  const bool halves = columns.panel.kind == BlockScales::kSuperHalves;
  const bool has_minimum = HasMinimum(columns.panel);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int32_t low[4] = {}, high[4] = {};
    if (halves) {
      MmaInt8(low, rows.words, {columns.words[half][0], 0u});
      MmaInt8(high, rows.words, {0u, columns.words[half][1]});
    } else {
      MmaInt8(low, rows.words, columns.words[half]);
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const ColumnScales& scales = columns.of_sums[half][c % 2];
      float& sum = sums[half][c];
      sum = fmaf(static_cast<float>(low[c]), rows.scale[c / 2] * scales.low, sum);
      if (halves) sum = fmaf(static_cast<float>(high[c]), rows.scale[c / 2] * scales.high, sum);
      if (has_minimum) sum = fmaf(rows.scaled_sum[c / 2], scales.minimum, sum);
    }
  }
}

template <int kTiles, GemmOutput kOutput, typename Out, bool kGrouped>
__device__ __forceinline__ void MultiplyBlocks(const GemmArgs& args) {
  constexpr bool kGated = kOutput == GemmOutput::kGated;
  const Lane lane;
  const BlockRows<kGrouped> rows(args);
  const int output_panel = static_cast<int>(blockIdx.x);
  const int of_w = args.panels != nullptr ? args.panels[output_panel] : output_panel;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * 16 * kTiles;
  if (kGrouped && first >= rows.count) return;
  BlockPanelOfWarp gate(args, of_w);
  BlockPanelOfWarp up(args, of_w + (kGated ? args.up_panel : 0));
  float sums[kTiles][2][4] = {}, up_sums[kTiles][2][4] = {};
  RowsOfLane<kGrouped> of_tiles[kTiles];
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    of_tiles[tile] = RowsOfLane<kGrouped>(rows, first + 16 * tile, lane);
  }
  const int num_blocks = args.words / kBlockWords;
#pragma unroll 1
  for (int block = 0; block < num_blocks; ++block) {
    gate.Load(block, lane);
    if constexpr (kGated) up.Load(block, lane);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const BlockRowsOfWarp of_tile(args, of_tiles[tile], block, lane);
      AddBlock(of_tile, gate, sums[tile]);
      if constexpr (kGated) AddBlock(of_tile, up, up_sums[tile]);
    }
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const int half = c / 4, at = half * 8 + lane.quad * 2 + c % 2;
      WriteOutput<kOutput, Out>(args, rows, first + 16 * tile + lane.group + c % 4 / 2 * 8,
                                output_panel * kPanelColumns + at, of_w * kPanelColumns + at,
                                sums[tile][half][c % 4], up_sums[tile][half][c % 4]);
    }
  }
}

// Grid: panels of the output, 16 kTiles rows. A block is one warp.
template <int kTiles, GemmOutput kOutput, typename Out>
__global__ void __launch_bounds__(32, 1) BlocksGemmKernel(GemmArgs args) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  MultiplyBlocks<kTiles, kOutput, Out, false>(args);
}

// Grid: panels of the output, 16 kTiles rows, groups. Blocks beyond a group's rows end at once.
template <int kTiles, GemmOutput kOutput, typename Out>
__global__ void __launch_bounds__(32, 1) GroupedBlocksGemmKernel(GemmArgs args) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  MultiplyBlocks<kTiles, kOutput, Out, true>(ArgsOfGroup<true>(args));
}

// Grid: tokens. The table's rows are those of a PackedWeight of blocks. X: of the residual stream.
template <typename X>
__global__ void EmbedBlocksKernel(EmbedArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  const int64_t row = blockIdx.x;
  const int token = a.tokens[row], column = token % kPanelColumns;
  const PanelPlace panel = a.places[token / kPanelColumns];
  const auto* table = static_cast<const uint8_t*>(a.table);
  for (int i = static_cast<int>(threadIdx.x); i < a.hidden; i += kRowThreads) {
    const int block = i / kBlockTerms, in_block = i % kBlockTerms;
    const ColumnScales scales(table + panel.scales, panel, block, column);
    const uint32_t word =
        BlockWord(table + panel.values + static_cast<int64_t>(block) * ValueBytes(panel), panel,
                  in_block / 4, column);
    const auto element = static_cast<float>(static_cast<int8_t>(word >> (in_block % 4 * 8)));
    float value = (in_block < kBlockTerms / 2 ? scales.low : scales.high) * element;
    if (HasMinimum(panel)) value = value + scales.minimum;
    X x = a.scale == 1.0f ? value : value * a.scale;
    a.x[row * a.hidden + i] = x;
  }
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
