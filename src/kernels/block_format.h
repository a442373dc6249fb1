#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace skein {

// Elements of a row that have one scale in an int8 row, and at most one in a matrix of blocks.
inline constexpr int32_t kBlockTerms = 32;

// The formats in which a matrix of blocks keeps its values, under GGUF's names. Q6_K, Q4_K, Q5_K
// and IQ4_XS have blocks of 256, the others of 32 elements.
enum class BlockFormat : uint8_t {
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ4K,
  kQ5K,
  kQ6K,
  kIq4Nl,
  kIq4Xs,
};

// The order of a panel's scales in memory, for 16 columns: see PackedWeight.
enum class BlockScales : uint8_t {
  // For 32 of k:
  kHalf,         // the scale [16] f16
  kHalfMinimum,  // the scale [16] f16, the minimum [16] f16
  // For 256 of k:
  kSuperMinimum,  // d [16] f16, dmin [16] f16, 8 times {scale [16] u8, minimum [16] u8}
  kSuperHalves,   // d [16] f16, 8 times {scale of 16 elements [16] i8, of the next 16 [16] i8}
  kSuper,         // d [16] f16, 8 times scale [16] i8
};

// An element is scale * value, or scale * value + minimum; its value is u - zero, or, in a codebook
// format, the codebook's at u. u has `bits` bits.
struct BlockTraits {
  std::string_view name;
  BlockScales scales;
  int32_t bits;
  int32_t zero;
  bool codebook;
  int32_t file_elements;  // of a block in the file
  int32_t file_bytes;

  bool has_minimum() const {
    return scales == BlockScales::kHalfMinimum || scales == BlockScales::kSuperMinimum;
  }
};

const BlockTraits& TraitsOf(BlockFormat format);
std::optional<BlockFormat> FindBlockFormat(std::string_view name);
// The bytes of a panel's values and of its scales for k elements, 16 columns; k is a multiple of
// the format's file_elements.
size_t PanelValueBytes(BlockFormat format, int32_t k);
size_t PanelScaleBytes(BlockFormat format, int32_t k);

// The values of the codebook formats, IQ4_NL and IQ4_XS.
inline constexpr int8_t kBlockCodebook[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                              1,    13,   25,  38,  53,  69,  89,  113};

// 32 elements of one row of a matrix of blocks: element i is scales[i / 16] * values[i] + minimum.
struct BlockTerms {
  int8_t values[kBlockTerms];
  float scales[2];  // of 16 elements each; the same but in Q6_K
  float minimum;    // +0 if the format has none
};

// Packs one row of k elements, from blocks as in the file (any alignment), as column `column` of a
// panel's values and scales.
void PackBlockRow(BlockFormat format, const std::byte* file_row, int32_t k, int32_t column,
                  std::byte* values, std::byte* scales);

// Elements [32 block, 32 block + 32) of column `column` of a panel.
BlockTerms ReadBlockTerms(BlockFormat format, const std::byte* values, const std::byte* scales,
                          int32_t column, int32_t block);

// Rounds x [k] to blocks of Q4_0 as in the file, k / 32 of 18 bytes. Of several scales each block
// takes the one with the least squared error. A block with a NaN or an infinity is all NaN.
void QuantizeQ4Row(std::span<const float> x, std::byte* out);

}  // namespace skein
