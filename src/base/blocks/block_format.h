#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace skein {

// The number of consecutive elements that share one scale in an int8 row (BlockTerms has as many).
inline constexpr int32_t kBlockTerms = 32;

// The formats in which a matrix of blocks keeps its values, under GGUF's names. Q6_K, Q4_K, Q5_K
// and IQ4_XS have blocks of 256 elements, the others of 32. INT4 is not a GGUF format: it holds
// groups of GPTQ and AWQ, whose zero points are integers. MXFP4 is of the OCP Microscaling Formats
// 1.0: a power of two, and 32 numbers with a sign, two bits of exponent and one of mantissa.
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
  kInt4,
  kMxfp4,
};

// The kinds of scales that a block has.
enum class BlockScales : uint8_t {
  kHalf,          // d of 32 elements
  kHalfMinimum,   // d and a minimum of 32 elements
  kHalfZero,      // d and a zero point of 32 elements: the minimum is -(d * zero), which is exact
  kSuperMinimum,  // d and dmin of 256; for each 32, integers that multiply d and dmin
  kSuperHalves,   // d of 256; for each 16, an integer that multiplies d
  kSuper,         // d of 256; for each 32, an integer that multiplies d
  kExponent,      // of 32 elements, a byte e: d is 2^(e - 128)
};

// The values of a format's elements u, [16].
using Codebook = const int8_t*;
// Those of IQ4_NL and IQ4_XS.
inline constexpr int8_t kIq4Codebook[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                            1,    13,   25,  38,  53,  69,  89,  113};
// Twice the numbers of MXFP4, which has -0 too.
inline constexpr int8_t kMxfp4Codebook[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                              0, -1, -2, -3, -4, -6, -8, -12};

// An element is scale * value, or scale * value + minimum. Its value is u - zero, or in a codebook
// format the entry u of the codebook. u has `bits` bits.
struct BlockTraits {
  std::string_view name;
  BlockScales scales;
  int32_t bits;
  int32_t zero;
  Codebook codebook;      // null: none
  int32_t file_elements;  // of a block in the file
  int32_t file_bytes;

  bool has_minimum() const {
    return scales == BlockScales::kHalfMinimum || scales == BlockScales::kHalfZero ||
           scales == BlockScales::kSuperMinimum;
  }
};

// The entries are in the order of BlockFormat.
inline constexpr BlockTraits kBlockTraits[] = {
    {"Q4_0", BlockScales::kHalf, 4, 8, nullptr, 32, 18},
    {"Q4_1", BlockScales::kHalfMinimum, 4, 0, nullptr, 32, 20},
    {"Q5_0", BlockScales::kHalf, 5, 16, nullptr, 32, 22},
    {"Q5_1", BlockScales::kHalfMinimum, 5, 0, nullptr, 32, 24},
    {"Q8_0", BlockScales::kHalf, 8, 128, nullptr, 32, 34},
    {"Q4_K", BlockScales::kSuperMinimum, 4, 0, nullptr, 256, 144},
    {"Q5_K", BlockScales::kSuperMinimum, 5, 0, nullptr, 256, 176},
    {"Q6_K", BlockScales::kSuperHalves, 6, 32, nullptr, 256, 210},
    {"IQ4_NL", BlockScales::kHalf, 4, 0, kIq4Codebook, 32, 18},
    {"IQ4_XS", BlockScales::kSuper, 4, 0, kIq4Codebook, 256, 136},
    {"INT4", BlockScales::kHalfZero, 4, 0, nullptr, 32, 19},
    {"MXFP4", BlockScales::kExponent, 4, 0, kMxfp4Codebook, 32, 17},
};

constexpr const BlockTraits& TraitsOf(BlockFormat format) {
  return kBlockTraits[static_cast<size_t>(format)];
}

// The number of elements of the largest block.
inline constexpr int32_t kSuperElements = 256;
// The blocks of 32 elements in it.
inline constexpr int32_t kBlocksOfSuper = kSuperElements / kBlockTerms;

// One block, as it is in a file: the u of its elements, and its scales as f16 bits or small
// integers.
struct FileBlock {
  uint8_t u[kSuperElements];
  uint16_t d, dmin;  // of the block; dmin is the minimum of a block of 32
  // Each of 32 elements; in Q6_K scales of 16, in INT4 the zero, in MXFP4 the exponent.
  uint8_t scales[16], minimums[8];
};

// Reads one block of traits.file_bytes bytes, at any alignment. Members that the format lacks stay
// unset, which saves time: loading a model reads all its blocks.
FileBlock ReadFileBlock(BlockFormat format, const std::byte* bytes);

// Reads the scales of a block alone: u stays unset.
FileBlock ReadFileScales(BlockFormat format, const std::byte* bytes);

// Whether a block of a file is 32 elements of four bits each.
constexpr bool HasNibbles(BlockFormat format) {
  const BlockTraits& traits = TraitsOf(format);
  return traits.bits == 4 && traits.file_elements == kBlockTerms;
}

// The elements of such a block, its last 16 bytes: byte i has element i in its low half and element
// 16 + i in its high half.
constexpr const std::byte* NibblesOf(BlockFormat format, const std::byte* bytes) {
  return bytes + TraitsOf(format).file_bytes - kBlockTerms / 2;
}

// 32 elements of one row: element i is scales[i / 16] * values[i] + minimum.
struct BlockTerms {
  int8_t values[kBlockTerms];
  float scales[2];  // each of 16 elements; only Q6_K has two different ones
  float minimum;    // +0 if the format has no minimum
};

// Elements [32 part, 32 part + 32) of a block.
BlockTerms TermsOf(BlockFormat format, const FileBlock& block, int32_t part);

// Widens `num_blocks` blocks, at any alignment, to num_blocks * traits.file_elements values. A
// value is scale * value, plus the minimum if the format has one; each operation is rounded to f32.
void DequantizeBlocks(BlockFormat format, const std::byte* bytes, int64_t num_blocks, float* out);

}  // namespace skein
