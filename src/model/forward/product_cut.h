#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "base/ceil_div.h"
#include "base/dtype.h"
#include "kernels/kernels.h"
#include "kernels/kv_layout.h"
#include "kernels/packed_weight.h"

namespace skein {

inline constexpr int32_t kTokensPerTicket = 16;  // of operators that work token by token

// The cut of a product [m, n] = [m, k] · [n, k]^T into tickets: chunks of rows by chunks of
// columns. Consecutive tickets have the same columns, so that their weights stay in a core's cache.
struct ProductCut {
  int32_t rows = 0;  // of a chunk; the last chunk has the rest
  int32_t cols = 0;  // a multiple of kPanelCols
  int32_t num_row_chunks = 0;
  int32_t num_col_chunks = 0;

  int32_t num_tickets() const { return num_row_chunks * num_col_chunks; }
  int32_t row_begin(int32_t ticket) const { return ticket % num_row_chunks * rows; }
  int32_t col_begin(int32_t ticket) const { return ticket / num_row_chunks * cols; }
};

// The most multiplications of a ticket on the matrix unit: under 1 ms at 0.4 TFLOP/s. A ticket may
// exceed this by one unit of columns.
inline constexpr int64_t kMaxTicketProducts = 192 << 20;
// The most bytes of weights of a ticket on vectors, which stay in a second-level cache; and its
// most rows.
inline constexpr int64_t kMaxVectorWeightBytes = 256 << 10;
inline constexpr int32_t kMaxVectorRows = 96;
// The most bytes of weights for so few rows that this is as little work: 0.25 ms at 8 GB/s. Each
// weight is read once then, and with small tickets threads often wait for the first weights.
inline constexpr int64_t kMaxStreamedWeightBytes = 2 << 20;
// The most bytes of weights for many rows if an instruction adds dot products. It is two to four
// times as fast, so with fewer columns it would wait for rows.
inline constexpr int64_t kMaxDotWeightBytes = 768 << 10;
inline constexpr int32_t kFewDotRows = 32;  // up to this number of rows, memory is the limit
// The fewest multiplications of a ticket, since claiming a ticket costs about 2 us.
inline constexpr int64_t kMinVectorProducts = 1 << 16;

// The part of the processor that computes a product: ordinary vectors; vectors with instructions
// that add dot products; the matrix unit; or, with blocks, vectors for few rows and the matrix unit
// for kAmxBlockRows and more.
enum class ProductUnit { kVectors, kDots, kMatrix, kMatrixOfBlocks };

// The unit of `isa` for weights of `dtype`.
inline ProductUnit UnitOf(Isa isa, DType dtype) {
  if (dtype == DType::kBlocks && isa == Isa::kAmx) return ProductUnit::kMatrixOfBlocks;
  if (dtype != DType::kBf16 && dtype != DType::kInt8) return ProductUnit::kVectors;
  if (isa == Isa::kAmx) return ProductUnit::kMatrix;
  const bool bf16_class = NumericClassOf(isa, DType::kBf16) == NumericClass::kBf16;
  const bool dots = bf16_class || (isa == Isa::kAvx512 && dtype == DType::kInt8);
  return dots ? ProductUnit::kDots : ProductUnit::kVectors;
}

// A product to be cut.
struct ProductShape {
  int32_t m = 0, n = 0, k = 0;
  bool swiglu = false;  // n columns of gate and n of up
  size_t element_bytes = 0;
  ProductUnit unit = ProductUnit::kVectors;
  int32_t col_unit = 1;  // chunks begin at multiples of it
};

// Whether the matrix unit computes the product.
inline bool IsOnMatrixUnit(const ProductShape& shape) {
  return shape.unit == ProductUnit::kMatrix ||
         (shape.unit == ProductUnit::kMatrixOfBlocks && shape.m >= kAmxBlockRows);
}

namespace cut_internal {

// Cuts for vectors: the weights of a ticket stay in the cache while chunks of rows pass over them.
inline void CutForVectors(const ProductShape& shape, int num_threads, ProductCut& cut) {
  // The widest register tile of the kernels. With fewer columns, accumulators are idle.
  constexpr int64_t kTileCols = 4 * kPanelCols;
  constexpr int32_t kTicketsPerThread = 4;  // enough to balance the threads
  cut.rows = std::min(shape.m, kMaxVectorRows);
  const int64_t row_chunks = CeilDiv(shape.m, cut.rows);
  const int64_t terms = int64_t{shape.k} * (shape.swiglu ? 2 : 1);  // terms of a column
  const bool wide = shape.unit == ProductUnit::kDots && shape.m > kFewDotRows;
  const int64_t streamed =
      std::min(kMaxStreamedWeightBytes, kMaxVectorWeightBytes * kMaxVectorRows / cut.rows);
  const int64_t most_bytes = wide ? kMaxDotWeightBytes : streamed;
  const int64_t by_bytes =
      std::max(most_bytes / (terms * static_cast<int64_t>(shape.element_bytes)), kTileCols);
  const int64_t by_threads =
      int64_t{shape.n} * row_chunks / (int64_t{kTicketsPerThread} * num_threads);
  const int64_t least = CeilDiv(kMinVectorProducts, terms * cut.rows);
  const int64_t cols = std::max({std::min(by_bytes, by_threads), least, int64_t{1}});
  const int64_t unit =
      std::lcm(cols > kTileCols / 2 ? kTileCols : kPanelCols, int64_t{shape.col_unit});
  cut.cols = static_cast<int32_t>(CeilDiv(cols, unit) * unit);
}

// Cuts for the matrix unit: the rows of a ticket stay in the cache, in the kernel's own order,
// while the weights pass over them. The rows have all of k, unless too few rows would then fit.
inline void CutForMatrixUnit(const ProductShape& shape, int num_threads, ProductCut& cut) {
  constexpr int64_t kStripBytes = 768 << 10;  // the part of a that the kernel keeps in the cache
  constexpr int32_t kMaxRows = 256, kMinRows = 96;
  constexpr int32_t kPartialRows = 128;  // rows, if not even kMinRows fit with all of k
  constexpr int32_t kRowUnit = 32;
  constexpr int64_t kMaxWeightBytes = 8 << 20;  // about 1 ms at 8 GB/s
  constexpr int64_t kMinProducts = 1 << 18;
  constexpr int32_t kTicketsPerThread = 2;  // few, because each may have to reorder its rows
  const auto fitting = static_cast<int32_t>(
      kStripBytes / (int64_t{shape.k} * static_cast<int64_t>(shape.element_bytes)) / kRowUnit *
      kRowUnit);
  const int32_t max_rows = fitting < kMinRows ? kPartialRows : std::min(fitting, kMaxRows);
  const int32_t row_chunks = CeilDiv(shape.m, max_rows);
  cut.rows =
      shape.m <= kRowUnit ? shape.m : CeilDiv(CeilDiv(shape.m, row_chunks), kRowUnit) * kRowUnit;
  const int64_t terms = int64_t{shape.k} * (shape.swiglu ? 2 : 1);  // terms of a column
  const int64_t products = terms * cut.rows;
  const int64_t by_memory = kMaxWeightBytes / (terms * static_cast<int64_t>(shape.element_bytes));
  const int64_t by_threads =
      int64_t{shape.n} * row_chunks / (int64_t{kTicketsPerThread} * num_threads);
  const int64_t cols = std::max({std::min({kMaxTicketProducts / products, by_memory, by_threads}),
                                 CeilDiv(kMinProducts, products), int64_t{1}});
  const int64_t unit = std::lcm(int64_t{2 * kPanelCols}, int64_t{shape.col_unit});
  cut.cols = static_cast<int32_t>(CeilDiv(cols, unit) * unit);
}

}  // namespace cut_internal

inline ProductCut CutProduct(const ProductShape& shape, int num_threads) {
  ProductCut cut;
  IsOnMatrixUnit(shape) ? cut_internal::CutForMatrixUnit(shape, num_threads, cut)
                        : cut_internal::CutForVectors(shape, num_threads, cut);
  cut.cols = std::min(cut.cols, CeilDiv(shape.n, kPanelCols) * kPanelCols);
  cut.num_row_chunks = CeilDiv(shape.m, cut.rows);
  cut.num_col_chunks = CeilDiv(shape.n, cut.cols);
  return cut;
}

// Cuts one product for changing numbers of rows. It cuts again only if the number changes.
class ProductCutter {
 public:
  // `shape.m` is ignored.
  ProductCutter(const ProductShape& shape, int num_threads)
      : shape_(shape), num_threads_(num_threads) {
    shape_.m = 0;
  }

  // m: the number of rows, >= 1.
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

// Query rows of one attention tile whose rows attend to up to `num_keys` keys. One ticket walks all
// of these keys. From kKeysOfFullTile keys on, the number of rows shrinks so that rows times keys
// stay the same, about 1 ms. It does not shrink below kMinRows, so beyond 12,288 keys tickets grow.
// With half as many rows, keys would be read twice as often. With 16 rows, reading saturates the
// memory, and the kernel has no work to do meanwhile.
inline int32_t AttentionTileRows(int32_t num_keys) {
  constexpr int32_t kKeysOfFullTile = 6144;
  constexpr int32_t kMinRows = 32;
  int32_t rows = kMaxQueryRows;
  while (rows > kMinRows && int64_t{rows} * num_keys > int64_t{kMaxQueryRows} * kKeysOfFullTile) {
    rows /= 2;
  }
  return rows;
}

// Tokens of an attention tile. Each token has `group` query heads for one KV head.
inline int32_t AttentionTileTokens(int32_t num_keys, int32_t group) {
  return std::max(AttentionTileRows(num_keys) / group, 1);
}

}  // namespace skein
