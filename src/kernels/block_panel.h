#pragma once

#include <cstddef>
#include <cstdint>

#include "base/blocks/block_format.h"

namespace skein {

// A panel of blocks: values and scales of 16 rows of a weight matrix, which are 16 columns of the
// product (see PackedWeight). The layout of the scales depends on BlockScales:
//
//   for every 32 elements of k:
//     kHalf:         the scale [16] f16
//     kHalfMinimum:  the scale [16] f16, the minimum [16] f16
//     kHalfZero:     the scale [16] f16, the zero point [16] u8
//     kExponent:     the exponent of the scale [16] u8
//   for every 256 elements of k:
//     kSuperMinimum: d [16] f16, dmin [16] f16, 8 times {scale [16] u8, minimum [16] u8}
//     kSuperHalves:  d [16] f16, 8 times {scale of 16 elements [16] i8, of the next 16 [16] i8}
//     kSuper:        d [16] f16, 8 times scale [16] i8

// The size in bytes of a panel's scales for one unit of k: 32 or 256 elements, depending on the
// format.
constexpr int32_t ScaleUnitBytes(BlockScales scales) {
  constexpr int32_t kColumns = 16;
  switch (scales) {
    case BlockScales::kHalf:
      return 2 * kColumns;
    case BlockScales::kHalfMinimum:
      return 4 * kColumns;
    case BlockScales::kHalfZero:
      return 3 * kColumns;
    case BlockScales::kSuperMinimum:
      return 4 * kColumns + kBlocksOfSuper * 2 * kColumns;
    case BlockScales::kSuperHalves:
      return 2 * kColumns + kBlocksOfSuper * 2 * kColumns;
    case BlockScales::kExponent:
      return kColumns;
    case BlockScales::kSuper:
      break;
  }
  return 2 * kColumns + kBlocksOfSuper * kColumns;
}

// The size in bytes of a panel's values, and that of its scales, for 16 columns of k elements each.
// k is a multiple of the format's file_elements.
size_t PanelValueBytes(BlockFormat format, int32_t k);
size_t PanelScaleBytes(BlockFormat format, int32_t k);

// Packs file_rows [num_rows, k] as columns [column, column + num_rows) of a panel's values and
// scales, and leaves no other column's bytes changed. The rows have the blocks of the file, one row
// behind the other, with any alignment. One block of all rows is packed before the next, so the
// written part stays in the first-level cache.
void PackBlockRows(BlockFormat format, const std::byte* file_rows, int32_t num_rows, int32_t k,
                   int32_t column, std::byte* values, std::byte* scales);

// Reads elements [32 block, 32 block + 32) of column `column` of a panel.
BlockTerms ReadBlockTerms(BlockFormat format, const std::byte* values, const std::byte* scales,
                          int32_t column, int32_t block);

}  // namespace skein
