#pragma once

#include <cstdint>

namespace skein {

// A matrix [rows, width] of bf16 in the order in which the matrix unit reads the rows of a product:
// [rows / 16][width / 32] tiles of [16 rows][32 elements], both quotients rounded up. A product
// need not pack a matrix that has this order.
inline constexpr int32_t kRowTileRows = 16;
inline constexpr int32_t kRowPiece = 32;  // adjacent elements of a row
inline constexpr int32_t kRowTileElements = kRowTileRows * kRowPiece;

// The index of element (row, column); width is a multiple of kRowPiece.
inline int64_t RowTileIndex(int64_t row, int64_t column, int64_t width) {
  return (row / kRowTileRows * (width / kRowPiece) + column / kRowPiece) * kRowTileElements +
         row % kRowTileRows * kRowPiece + column % kRowPiece;
}

// The index of element i of a row, counted from the row's first element. `piece_stride` is the
// distance of the row's pieces: kRowPiece in a plain row of any type, kRowTileElements in tiles.
inline int64_t PieceIndex(int64_t i, int64_t piece_stride) {
  return i / kRowPiece * piece_stride + i % kRowPiece;
}

}  // namespace skein
