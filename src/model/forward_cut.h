#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/packed_weight.h"

namespace skein {

inline constexpr int32_t kTokensPerTicket = 16;       // of the operators that go token by token
inline constexpr int32_t kProductRowsPerTicket = 96;  // of a matrix product

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

inline ProductCut CutProduct(int32_t m, int32_t n, int32_t k, size_t element_bytes,
                             int32_t max_rows, int num_threads) {
  constexpr int64_t kWeightBytes = 256 << 10;  // a part of a second-level cache
  // The widest register tile of the kernels: fewer columns leave accumulators idle.
  constexpr int64_t kTileCols = 4 * kPanelCols;
  constexpr int64_t kMinProducts = 1 << 16;  // about 2 us: much dearer than taking a ticket
  constexpr int32_t kTicketsPerThread = 4;   // enough to even out
  const auto ceil_div = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  ProductCut cut;
  cut.rows = std::min(m, max_rows);
  cut.num_row_chunks = static_cast<int32_t>(ceil_div(m, cut.rows));
  const int64_t by_cache =
      std::max(kWeightBytes / (int64_t{k} * static_cast<int64_t>(element_bytes)), kTileCols);
  const int64_t by_threads =
      int64_t{n} * cut.num_row_chunks / (int64_t{kTicketsPerThread} * num_threads);
  const int64_t least = ceil_div(kMinProducts, int64_t{k} * cut.rows);
  const int64_t cols = std::max({std::min(by_cache, by_threads), least, int64_t{1}});
  const int64_t unit = cols > kTileCols / 2 ? kTileCols : kPanelCols;
  const int64_t whole = ceil_div(n, kPanelCols) * kPanelCols;
  cut.cols = static_cast<int32_t>(std::min(ceil_div(cols, unit) * unit, whole));
  cut.num_col_chunks = static_cast<int32_t>(ceil_div(n, cut.cols));
  return cut;
}

}  // namespace skein
