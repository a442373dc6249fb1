#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "kernels/kv_layout.h"
#include "kernels/packed_weight.h"

namespace skein {

inline constexpr int32_t kTokensPerTicket = 16;  // of the operators that go token by token
inline int32_t CeilDiv(int32_t a, int32_t b) { return (a + b - 1) / b; }

// How a product [m, n] = [m, k] · [n, k]^T is cut into tickets: chunks of rows by chunks of
// columns. Consecutive tickets share their columns, so that those weights stay in a core's cache.
struct ProductCut {
  int32_t rows = 0;  // of a chunk; the last has what is left
  int32_t cols = 0;  // a multiple of kPanelCols
  int32_t num_row_chunks = 0;
  int32_t num_col_chunks = 0;

  int32_t num_tickets() const { return num_row_chunks * num_col_chunks; }
  int32_t row_begin(int32_t ticket) const { return ticket % num_row_chunks * rows; }
  int32_t col_begin(int32_t ticket) const { return ticket / num_row_chunks * cols; }
};

// Products (of an element of a and one of a weight) of a ticket on the matrix unit: under 1 ms at
// 0.4 TFLOP/s. A ticket has at most one unit of columns more.
inline constexpr int64_t kMaxTicketProducts = 192 << 20;
// On vectors: weights of a ticket, a part of a second-level cache; likewise. And its rows.
inline constexpr int64_t kMaxVectorWeightBytes = 256 << 10;
inline constexpr int32_t kMaxVectorRows = 96;
// Of any ticket, however small the product: taking it must be cheap beside it (about 2 us).
inline constexpr int64_t kMinVectorProducts = 1 << 16;

// A product to be cut.
struct ProductShape {
  int32_t m = 0, n = 0, k = 0;
  bool swiglu = false;  // n columns of gate and as many of up
  size_t element_bytes = 0;
  bool matrix_unit = false;  // bf16 on AMX
  int32_t col_unit = 1;      // chunks begin at multiples of it
};

namespace cut_internal {

inline int64_t CeilDiv64(int64_t a, int64_t b) { return (a + b - 1) / b; }

// On vectors: the weights of a ticket stay in the cache while its rows pass over them.
inline void CutForVectors(const ProductShape& shape, int num_threads, ProductCut& cut) {
  // The widest register tile of the kernels: fewer columns leave accumulators idle.
  constexpr int64_t kTileCols = 4 * kPanelCols;
  constexpr int32_t kTicketsPerThread = 4;  // enough to even out
  cut.rows = std::min(shape.m, kMaxVectorRows);
  const int64_t row_chunks = CeilDiv64(shape.m, cut.rows);
  const int64_t terms = int64_t{shape.k} * (shape.swiglu ? 2 : 1);  // of a column
  const int64_t by_cache = std::max(
      kMaxVectorWeightBytes / (terms * static_cast<int64_t>(shape.element_bytes)), kTileCols);
  const int64_t by_threads =
      int64_t{shape.n} * row_chunks / (int64_t{kTicketsPerThread} * num_threads);
  const int64_t least = CeilDiv64(kMinVectorProducts, terms * cut.rows);
  const int64_t cols = std::max({std::min(by_cache, by_threads), least, int64_t{1}});
  const int64_t unit =
      std::lcm(cols > kTileCols / 2 ? kTileCols : kPanelCols, int64_t{shape.col_unit});
  cut.cols = static_cast<int32_t>(CeilDiv64(cols, unit) * unit);
}

// On the matrix unit: the rows of a ticket stay in the cache, in the kernel's own order and, if a
// useful number of them can, with all of k, while the weights pass over them.
inline void CutForMatrixUnit(const ProductShape& shape, int num_threads, ProductCut& cut) {
  constexpr int64_t kStripBytes = 768 << 10;  // as much of a as the kernel keeps
  constexpr int32_t kMaxRows = 256, kMinRows = 96;
  constexpr int32_t kPartialRows = 128;  // where not even the least fit with all of k
  constexpr int32_t kRowUnit = 32;
  constexpr int64_t kMaxWeightBytes = 8 << 20;  // about 1 ms at 8 GB/s
  constexpr int64_t kMinProducts = 1 << 18;
  constexpr int32_t kTicketsPerThread = 2;  // each may bring its rows into order: few
  const auto fitting = static_cast<int32_t>(
      kStripBytes / (int64_t{shape.k} * static_cast<int64_t>(shape.element_bytes)) / kRowUnit *
      kRowUnit);
  const int32_t max_rows = fitting < kMinRows ? kPartialRows : std::min(fitting, kMaxRows);
  const int32_t row_chunks = CeilDiv(shape.m, max_rows);
  cut.rows =
      shape.m <= kRowUnit ? shape.m : CeilDiv(CeilDiv(shape.m, row_chunks), kRowUnit) * kRowUnit;
  const int64_t terms = int64_t{shape.k} * (shape.swiglu ? 2 : 1);  // of a column
  const int64_t products = terms * cut.rows;
  const int64_t by_memory = kMaxWeightBytes / (terms * static_cast<int64_t>(shape.element_bytes));
  const int64_t by_threads =
      int64_t{shape.n} * row_chunks / (int64_t{kTicketsPerThread} * num_threads);
  const int64_t cols = std::max({std::min({kMaxTicketProducts / products, by_memory, by_threads}),
                                 CeilDiv64(kMinProducts, products), int64_t{1}});
  const int64_t unit = std::lcm(int64_t{2 * kPanelCols}, int64_t{shape.col_unit});
  cut.cols = static_cast<int32_t>(CeilDiv64(cols, unit) * unit);
}

}  // namespace cut_internal

inline ProductCut CutProduct(const ProductShape& shape, int num_threads) {
  ProductCut cut;
  shape.matrix_unit ? cut_internal::CutForMatrixUnit(shape, num_threads, cut)
                    : cut_internal::CutForVectors(shape, num_threads, cut);
  cut.cols = std::min(cut.cols, CeilDiv(shape.n, kPanelCols) * kPanelCols);
  cut.num_row_chunks = CeilDiv(shape.m, cut.rows);
  cut.num_col_chunks = CeilDiv(shape.n, cut.cols);
  return cut;
}

// Cuts one product for changing numbers of rows. Equal numbers in a row are cut once.
class ProductCutter {
 public:
  // The shape's m is ignored.
  ProductCutter(const ProductShape& shape, int num_threads)
      : shape_(shape), num_threads_(num_threads) {
    shape_.m = 0;
  }

  // m: rows, >= 1.
  const ProductCut& Cut(int32_t m) {
    if (m != shape_.m) {
      shape_.m = m;
      cut_ = CutProduct(shape_, num_threads_);
    }
    return cut_;
  }

 private:
  ProductShape shape_;
  int num_threads_;
  ProductCut cut_;
};

// Query rows of one attention tile whose rows see up to `num_keys` keys, which all of them pass
// over in one ticket. From kKeysOfFullTile keys on a tile has fewer rows, so that rows times keys
// stay what they are there, about 1 ms. But not below kMinRows, so beyond 12,288 keys a ticket
// grows with them: half as many rows would read the keys twice as often, which at 16 rows is as
// much as memory gives, and leave the kernel nothing to overlap.
inline int32_t AttentionTileRows(int32_t num_keys) {
  constexpr int32_t kKeysOfFullTile = 6144;
  constexpr int32_t kMinRows = 32;
  int32_t rows = kMaxQueryRows;
  while (rows > kMinRows && int64_t{rows} * num_keys > int64_t{kMaxQueryRows} * kKeysOfFullTile) {
    rows /= 2;
  }
  return rows;
}

// Tokens of such a tile, each of which has `group` query heads for one KV head.
inline int32_t AttentionTileTokens(int32_t num_keys, int32_t group) {
  return std::max(AttentionTileRows(num_keys) / group, 1);
}

}  // namespace skein
