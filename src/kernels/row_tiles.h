#pragma once

#include <cstdint>

namespace skein {

// A matrix [rows, width] of bf16 in the order in which the matrix unit takes the rows of a product:
// [rows / 16][width / 32] tiles of [16 rows][32 elements], both sizes rounded up. What lies so need
// not be packed for a product.
inline constexpr int32_t kRowTileRows = 16;
inline constexpr int32_t kRowPiece = 32;  // elements of a row that lie together
inline constexpr int32_t kRowTileElements = kRowTileRows * kRowPiece;

// Where element (row, column) lies; width is a multiple of kRowPiece.
inline int64_t RowTileIndex(int64_t row, int64_t column, int64_t width) {
  return (row / kRowTileRows * (width / kRowPiece) + column / kRowPiece) * kRowTileElements +
         row % kRowTileRows * kRowPiece + column % kRowPiece;
}

// Where element i of a row lies, from its first one, that has `piece_stride` elements from one
// piece to the next: kRowPiece in a plain row of any type, kRowTileElements in tiles.
inline int64_t PieceIndex(int64_t i, int64_t piece_stride) {
  return i / kRowPiece * piece_stride + i % kRowPiece;
}

}  // namespace skein
