#pragma once

// Products with matrices that stay in blocks of 4 to 8 bits (docs/numerics.md, "Blocks: weights of
// 4 to 8 bits"). A block of 32 elements is one product of the tensor cores: its integer sum is
// exact, and joins the f32 sum of the output by its scales. Every output is one such chain over its
// blocks, whatever the tile.

#include <cstdint>

#include "base/blocks/block_format.h"
#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/gemm.h"
#include "cuda/kernels/math.h"
#include "cuda/kernels/products.h"
#include "cuda/kernels/rows.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline constexpr int kBlockWords = kBlockTerms / 4;  // of a row in int8
static_assert(kBlockWords == kMmaWords);

// Tiles of 16 rows in one warp. A gated product has twice the sums.
template <GemmOutput kOutput>
inline constexpr int kBlockTiles = kOutput == GemmOutput::kGated ? 2 : 4;

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

// The bits of four elements of a column, as they lie in memory.
struct RawWord {
  uint32_t low, high;
};

// Those of column `column` that begin at row 4 * quad of a block. kernels/block_panel.cc fixes the
// layout of the bits in memory.
__device__ __forceinline__ RawWord LoadRawWord(const uint8_t* block, const PanelPlace& panel,
                                               int quad, int column) {
  const uint32_t* words = reinterpret_cast<const uint32_t*>(block) + column;
  constexpr int kLowWords = 4 * kPanelColumns;
  RawWord raw = {words[(panel.bits == 8 ? quad : quad / 2) * kPanelColumns], 0};
  if (panel.bits == 5) raw.high = words[kLowWords];
  if (panel.bits == 6) raw.high = words[kLowWords + quad / 4 * kPanelColumns];
  return raw;
}

// The elements as four signed bytes.
__device__ __forceinline__ uint32_t WordOf(const RawWord& raw, const PanelPlace& panel, int quad) {
  if (panel.bits == 8) return raw.low ^ 0x80808080u;
  uint32_t u = raw.low >> (quad % 2 * 4) & 0x0f0f0f0fu;
  if (panel.codebook) {
    return panel.kind == BlockScales::kExponent ? LookUp<kMxfp4Codebook>(u)
                                                : LookUp<kIq4Codebook>(u);
  }
  if (panel.bits == 5) u |= (raw.high >> quad & 0x01010101u) << 4;
  if (panel.bits == 6) u |= (raw.high >> (quad % 4 * 2) & 0x03030303u) << 4;
  // Byte by byte, without a borrow from the next.
  return ((u | 0x80808080u) - panel.zero * 0x01010101u) ^ 0x80808080u;
}

// The numbers from which the scales of a column in one block follow, as they lie in memory. Those
// that the format does not have are 0.
struct RawScales {
  RawScales() = default;
  __device__ __forceinline__ RawScales(const uint8_t* scales, const PanelPlace& panel, int block,
                                       int column) {
    constexpr int kHalves = 2 * kPanelColumns;  // bytes of an f16 of each column
    const auto half = [column](const uint8_t* from) {
      return reinterpret_cast<const uint16_t*>(from)[column];
    };
    const BlockScales kind = panel.kind;
    const bool two_halves = kind == BlockScales::kHalfMinimum || kind == BlockScales::kSuperMinimum;
    if (kind == BlockScales::kExponent) {
      small[0] = scales[static_cast<int64_t>(block) * kPanelColumns + column];
      return;
    }
    if (kind == BlockScales::kHalf || kind == BlockScales::kHalfMinimum ||
        kind == BlockScales::kHalfZero) {
      const bool zero = kind == BlockScales::kHalfZero;
      const int bytes = (two_halves ? 2 * kHalves : kHalves) + (zero ? kPanelColumns : 0);
      const uint8_t* unit = scales + static_cast<int64_t>(block) * bytes;
      halves[0] = half(unit);
      if (two_halves) halves[1] = half(unit + kHalves);
      if (zero) small[0] = unit[kHalves + column];
      return;
    }
    const int head = two_halves ? 2 * kHalves : kHalves;
    const int row = kind == BlockScales::kSuper ? kPanelColumns : 2 * kPanelColumns;
    const uint8_t* unit =
        scales + static_cast<int64_t>(block / kBlocksOfSuper) * (head + kBlocksOfSuper * row);
    const uint8_t* of_block = unit + head + block % kBlocksOfSuper * row + column;
    halves[0] = half(unit);
    if (two_halves) halves[1] = half(unit + kHalves);
    small[0] = of_block[0];
    if (kind != BlockScales::kSuper) small[1] = of_block[kPanelColumns];
  }

  uint16_t halves[2] = {};
  uint8_t small[2] = {};
};

// The scales of a column in one block.
struct ColumnScales {
  ColumnScales() = default;
  __device__ __forceinline__ ColumnScales(const RawScales& raw, BlockScales kind) {
    const auto signed_byte = [](uint8_t byte) {
      return static_cast<float>(static_cast<int8_t>(byte));
    };
    minimum = 0.0f;
    if (kind == BlockScales::kExponent) {
      const uint32_t e = raw.small[0];
      low = high = __uint_as_float(e < 2 ? 0u : (e - 1) << 23);
      return;
    }
    const float d = WidenHalf(raw.halves[0]);
    low = high = d;
    switch (kind) {
      case BlockScales::kHalfMinimum:
        minimum = WidenHalf(raw.halves[1]);
        break;
      case BlockScales::kHalfZero:
        minimum = (0.0f - d) * static_cast<float>(raw.small[0]);
        break;
      case BlockScales::kSuperMinimum:
        low = high = d * static_cast<float>(raw.small[0]);
        minimum = (0.0f - WidenHalf(raw.halves[1])) * static_cast<float>(raw.small[1]);
        break;
      case BlockScales::kSuper:
        low = high = d * signed_byte(raw.small[0]);
        break;
      case BlockScales::kSuperHalves:
        low = d * signed_byte(raw.small[0]);
        high = d * signed_byte(raw.small[1]);
        break;
      default:
        break;
    }
  }

  float low, high;  // of 16 elements each
  float minimum;
};

// The scale of a row in one block, and the scaled sum of its elements.
struct RowScales {
  float scale, scaled_sum;
};

__device__ __forceinline__ bool HasMinimum(const PanelPlace& panel) {
  return panel.kind == BlockScales::kHalfMinimum || panel.kind == BlockScales::kHalfZero ||
         panel.kind == BlockScales::kSuperMinimum;
}

// A panel of w, in a product of 16 rows: a lane multiplies with columns group and group + 8, and
// has the sums of columns 2 quad, 2 quad + 1, and those plus 8.
struct BlockPanel {
  __device__ __forceinline__ BlockPanel(const GemmArgs& args, int index)
      : place(args.places[index]),
        values(static_cast<const uint8_t*>(args.w) + place.values),
        scales(static_cast<const uint8_t*>(args.w) + place.scales),
        halves(place.kind == BlockScales::kSuperHalves),
        has_minimum(HasMinimum(place)) {}

  // The lane's words over a block.
  __device__ __forceinline__ void Load(int block, const Lane& lane, RawWord (&words)[2][2]) const {
    const uint8_t* at = values + static_cast<int64_t>(block) * ValueBytes(place);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      words[i / 2][i % 2] = LoadRawWord(at, place, lane.quad + i % 2 * 4, lane.group + i / 2 * 8);
    }
  }
  __device__ __forceinline__ RawScales LoadScales(int block, int column) const {
    return {scales, place, block, column};
  }
  __device__ __forceinline__ ColumnScales ScalesOf(const RawScales& raw) const {
    return {raw, place.kind};
  }

  // The elements of loaded words.
  __device__ __forceinline__ void Decode(const RawWord (&raw)[2][2], const Lane& lane,
                                         uint32_t (&words)[2][2]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      words[i / 2][i % 2] = WordOf(raw[i / 2][i % 2], place, lane.quad + i % 2 * 4);
    }
  }

  // The integer sums of a block of 16 rows with columns group and group + 8: of its first half and
  // of its second one, if these have scales of their own; otherwise `low` alone.
  __device__ __forceinline__ void Multiply(const uint32_t (&rows)[4], const uint32_t (&words)[2][2],
                                           int32_t (&low)[2][4], int32_t (&high)[2][4]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (halves) {
        MmaInt8(low[half], rows, {words[half][0], 0u});
        MmaInt8(high[half], rows, {0u, words[half][1]});
      } else {
        MmaInt8(low[half], rows, words[half]);
      }
    }
  }

  // The sum of an output behind a block, with the scales of its row and of its column.
  __device__ __forceinline__ float Join(float sum, int32_t low, int32_t high, const RowScales& row,
                                        const ColumnScales& column) const {
    sum = fmaf(static_cast<float>(low), row.scale * column.low, sum);
    if (halves) sum = fmaf(static_cast<float>(high), row.scale * column.high, sum);
    if (has_minimum) sum = fmaf(row.scaled_sum, column.minimum, sum);
    return sum;
  }

  PanelPlace place;
  const uint8_t* values;
  const uint8_t* scales;
  bool halves, has_minimum;
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

// The lane's words of a tile of 16 rows, at one block. Rows that do not exist are 0.
template <bool kGrouped>
__device__ __forceinline__ void LoadRows(const GemmArgs& args, const RowsOfLane<kGrouped>& rows,
                                         int block, const Lane& lane, uint32_t (&words)[4]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t* of_row =
        static_cast<const uint32_t*>(args.a) + rows.Row(i) * args.lda + block * kBlockWords;
    words[i] = rows.Exists(i) ? of_row[lane.quad] : 0u;
    words[2 + i] = rows.Exists(i) ? of_row[lane.quad + 4] : 0u;
  }
}
__device__ __forceinline__ RowScales LoadRowScales(const GemmArgs& args, int64_t row, bool exists,
                                                   int block) {
  if (!exists) return {0.0f, 0.0f};
  const float* at = args.a_scales + 2 * (row * (args.words / kBlockWords) + block);
  return {at[0], at[1]};
}

// A panel at one block, as a lane loads it.
struct LoadedBlock {
  __device__ __forceinline__ LoadedBlock(const BlockPanel& panel, int block, const Lane& lane) {
    panel.Load(block, lane, words);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = i / 2 * 8 + 2 * lane.quad + i % 2;
      scales[i / 2][i % 2] = panel.LoadScales(block, column);
    }
  }

  RawWord words[2][2];
  RawScales scales[2][2];  // of the columns whose sums the lane has
};

// And as it multiplies with it.
struct DecodedBlock {
  __device__ __forceinline__ DecodedBlock(const BlockPanel& panel, const LoadedBlock& loaded,
                                          const Lane& lane) {
    panel.Decode(loaded.words, lane, words);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      scales[i / 2][i % 2] = panel.ScalesOf(loaded.scales[i / 2][i % 2]);
    }
  }

  uint32_t words[2][2];
  ColumnScales scales[2][2];
};

// Adds a block to the sums of 16 rows and 16 columns.
__device__ __forceinline__ void AddBlock(const BlockPanel& panel, const DecodedBlock& block,
                                         const uint32_t (&rows)[4], const RowScales (&scales)[2],
                                         float (&sums)[2][4]) {
  int32_t low[2][4] = {}, high[2][4] = {};
  panel.Multiply(rows, block.words, low, high);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int half = i / 4, c = i % 4;
    sums[half][c] = panel.Join(sums[half][c], low[half][c], high[half][c], scales[c / 2],
                               block.scales[half][c % 2]);
  }
}

template <GemmOutput kOutput, typename Out, bool kGrouped>
__device__ __forceinline__ void MultiplyBlocks(const GemmArgs& args) {
  constexpr bool kGated = kOutput == GemmOutput::kGated;
  constexpr int kTiles = kBlockTiles<kOutput>;
  const Lane lane;
  const BlockRows<kGrouped> rows(args);
  const int output_panel = static_cast<int>(blockIdx.x);
  const int of_w = args.panels != nullptr ? args.panels[output_panel] : output_panel;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * 16 * kTiles;
  if (kGrouped && first >= rows.count) return;
  const BlockPanel gate(args, of_w);
  const BlockPanel up(args, of_w + (kGated ? args.up_panel : 0));
  float sums[kTiles][2][4] = {}, up_sums[kTiles][2][4] = {};
  RowsOfLane<kGrouped> of_tiles[kTiles];
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    of_tiles[tile] = RowsOfLane<kGrouped>(rows, first + 16 * tile, lane);
  }
  const int num_blocks = args.words / kBlockWords;
  LoadedBlock next_gate(gate, 0, lane), next_up(kGated ? up : gate, 0, lane);
#pragma unroll 1
  for (int block = 0; block < num_blocks; ++block) {
    const DecodedBlock of_gate(gate, next_gate, lane), of_up(kGated ? up : gate, next_up, lane);
    if (block + 1 < num_blocks) {
      next_gate = LoadedBlock(gate, block + 1, lane);
      if constexpr (kGated) next_up = LoadedBlock(up, block + 1, lane);
    }
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const RowsOfLane<kGrouped>& of_tile = of_tiles[tile];
      uint32_t words[4];
      LoadRows(args, of_tile, block, lane, words);
      const RowScales scales[2] = {LoadRowScales(args, of_tile.Row(0), of_tile.Exists(0), block),
                                   LoadRowScales(args, of_tile.Row(1), of_tile.Exists(1), block)};
      AddBlock(gate, of_gate, words, scales, sums[tile]);
      if constexpr (kGated) AddBlock(up, of_up, words, scales, up_sums[tile]);
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

// Products of many rows. Grid: panels of the output, 16 kBlockTiles rows. A block is one warp.
template <GemmOutput kOutput, typename Out>
__global__ void __launch_bounds__(32, 1) BlocksGemmKernel(GemmArgs args) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  MultiplyBlocks<kOutput, Out, false>(args);
}

// Grid: panels of the output, 16 kBlockTiles rows, groups. Blocks beyond a group's rows end at
// once.
template <GemmOutput kOutput, typename Out>
__global__ void __launch_bounds__(32, 1) GroupedBlocksGemmKernel(GemmArgs args) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  MultiplyBlocks<kOutput, Out, true>(ArgsOfGroup<true>(args));
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
    const ColumnScales scales(RawScales(table + panel.scales, panel, block, column), panel.kind);
    const uint8_t* values = table + panel.values + static_cast<int64_t>(block) * ValueBytes(panel);
    const int quad = in_block / 4;
    const uint32_t word = WordOf(LoadRawWord(values, panel, quad, column), panel, quad);
    const auto element = static_cast<float>(static_cast<int8_t>(word >> (in_block % 4 * 8)));
    float value = (in_block < kBlockTerms / 2 ? scales.low : scales.high) * element;
    if (HasMinimum(panel)) value = value + scales.minimum;
    X x = a.scale == 1.0f ? value : value * a.scale;
    a.x[row * a.hidden + i] = x;
  }
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
