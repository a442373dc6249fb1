#include "model/forward/operators/lora_operator.h"

#include <algorithm>

namespace skein {
namespace {

// The rows of a ticket: whole tiles, since a product in tiles begins at the first row of one.
constexpr int32_t kRows = kRowTileRows;

}  // namespace

int32_t LoraOperator::Begin(OperatorRange range) {
  range_ = range;
  return pass_.layout.has_adapters() ? CeilDiv(range.count, kRows) : 0;
}

// Each adapter among the rows multiplies all of them, since a tile cannot be cut. Its own rows are
// kept.
void LoraOperator::Run(int32_t ticket) {
  constexpr int32_t kCols = 4 * kPanelCols;
  alignas(64) float sums[kRows * kCols];
  const int32_t begin = ticket * kRows, num_rows = std::min(kRows, range_.count - begin);
  const auto adapter_of = [&](int32_t i) {
    return pass_.layout.AdapterAt(range_.first + begin + i);
  };
  for (int32_t i = 0; i < num_rows; ++i) {
    const int32_t adapter = adapter_of(i);
    const auto is_same = [&](int32_t other) { return adapter_of(other) == adapter; };
    bool is_first = adapter != 0;
    for (int32_t j = 0; j < i && is_first; ++j) is_first = !is_same(j);
    if (!is_first) continue;
    const LoraPair& pair = (*pass_.context.adapters)[adapter - 1].layers[layer_].of(product_);
    GemmCall call = pass_.CallOn(pair.a, in_, range_.first, begin);
    call.m = num_rows;
    call.out = sums;
    call.ldo = kCols;
    for (int32_t col = 0; col < pair.rank(); col += kCols) {
      call.n_begin = call.out_begin = col;
      call.n_end = std::min(col + kCols, pair.rank());
      pass_.kernels().Gemm(call);
      for (int32_t row = i; row < num_rows; ++row) {
        if (!is_same(row)) continue;
        float* const out = pass_.workspace.lora + int64_t{begin + row} * pass_.limits.lora_rank;
        std::copy_n(sums + row * kCols, call.n_end - col, out + col);
      }
    }
  }
}

}  // namespace skein
