#include "model/forward/operators/qkv_operator.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace skein {
namespace {

constexpr int32_t kSums = 48 << 10;  // a small number, since products use more of the same stack
constexpr int32_t kRowUnit = 32;

// The size of the parts of a ticket whose sums fit kSums: whole heads and whole panels.
struct PartSize {
  int32_t rows = 0;
  int32_t cols = 0;
};

PartSize PartSizeOf(int32_t ticket_rows, int32_t head_dim) {
  const int32_t unit = std::lcm(head_dim, kPanelCols);
  static_assert(kSums / (kMaxHeadDim * kPanelCols / 2) >= kRowTileRows);  // the widest unit
  // A row of sums is one panel longer than its columns, so that rows begin on different cache
  // lines.
  const int32_t row_unit = unit + kPanelCols > kSums / kRowUnit ? kRowTileRows : kRowUnit;
  const int32_t rows = std::min(ticket_rows, kSums / (unit + kPanelCols) / row_unit * row_unit);
  return {rows, (kSums / rows - kPanelCols) / unit * unit};
}

const float* DataOrNull(const std::vector<float>& v) { return v.empty() ? nullptr : v.data(); }

ProductShape QkvShape(const PassState& pass, const PackedWeight& w) {
  ProductShape shape = pass.Shape(pass.qkv_width(), w.k(), w.dtype());
  shape.col_unit = pass.config().head_dim;
  return shape;
}

}  // namespace

QkvOperator::QkvOperator(PassState& pass, int32_t layer)
    : pass_(pass),
      index_(layer),
      layer_(pass.weights().layers[layer]),
      heads_(pass, layer),
      cutter_(pass.Cutter(QkvShape(pass, layer_.qkv))) {}

int32_t QkvOperator::Begin(OperatorRange range) {
  range_ = range;
  cut_ = cutter_.Cut(range.count);
  return cut_.num_tickets();
}

void QkvOperator::Run(int32_t ticket) {
  alignas(64) float sums[kSums];
  const Part all = {
      cut_.row_begin(ticket), std::min(cut_.row_begin(ticket) + cut_.rows, range_.count),
      cut_.col_begin(ticket), std::min(cut_.col_begin(ticket) + cut_.cols, pass_.qkv_width())};
  const PartSize size = PartSizeOf(all.row_end - all.row_begin, pass_.config().head_dim);
  for (int32_t row = all.row_begin; row < all.row_end; row += size.rows) {
    GemmCall call = pass_.CallOn(layer_.qkv, pass_.NormedRows(), range_.first, row);
    call.bias = DataOrNull(layer_.qkv_bias);
    call.out = sums;
    for (int32_t col = all.col_begin; col < all.col_end; col += size.cols) {
      const Part part = {row, std::min(row + size.rows, all.row_end), col,
                         std::min(col + size.cols, all.col_end)};
      call.m = part.row_end - row;
      call.n_begin = call.out_begin = col;
      call.n_end = part.col_end;
      call.ldo = (CeilDiv(part.col_end - col, kPanelCols) + 1) * kPanelCols;
      pass_.kernels().Gemm(call);
      pass_.AddLora(LoraProduct::kQkv, index_, range_.first, row, call);
      heads_.Store({part.row_begin, part.row_end}, {part.col_begin, part.col_end}, range_.first,
                   sums, call.ldo);
    }
  }
}

}  // namespace skein
