#include "model/forward/operators/gate_up_operator.h"

#include <algorithm>

#include "kernels/row_tiles.h"

namespace skein {
namespace {

ProductShape GateUpShape(const PassState& pass, const PackedWeight& w) {
  ProductShape shape = pass.Shape(w.n() / 2, w.k(), w.dtype());
  shape.swiglu = true;
  return shape;
}

}  // namespace

GateUpOperator::GateUpOperator(PassState& pass, int32_t layer)
    : pass_(pass),
      index_(layer),
      layer_(pass.weights().layers[layer]),
      padded_(layer_.gate_up.n() / 2),
      cutter_(pass.Cutter(GateUpShape(pass, layer_.gate_up))) {}

int32_t GateUpOperator::Begin(OperatorRange range) {
  range_ = range;
  cut_ = cutter_.Cut(range.count);
  return cut_.num_tickets();
}

void GateUpOperator::Run(int32_t ticket) {
  const int32_t row = cut_.row_begin(ticket), col = cut_.col_begin(ticket);
  const Part part = {row, std::min(cut_.rows, range_.count - row), col,
                     std::min(col + cut_.cols, padded_)};
  HasAdapters(part) ? RunWithAdapters(part) : RunFused(part);
}

bool GateUpOperator::HasAdapters(const Part& part) const {
  for (int32_t i = 0; i < part.m && pass_.layout.has_adapters(); ++i) {
    if (pass_.LoraOf(LoraProduct::kGateUp, index_, range_.first + part.row + i)) return true;
  }
  return false;
}

GemmCall GateUpOperator::CallOn(const Part& part, int32_t up_begin) const {
  GemmCall call = pass_.CallOn(layer_.gate_up, pass_.NormedRows(), range_.first, part.row);
  call.m = part.m;
  call.n_begin = up_begin + part.col_begin;
  call.n_end = up_begin + part.col_end;
  call.bias = layer_.gate_up_bias.empty() ? nullptr : layer_.gate_up_bias.data();
  return call;
}

void GateUpOperator::RunFused(const Part& part) {
  GemmCall call = CallOn(part, 0);
  call.up_begin = padded_;
  call.activation = pass_.config().activation;
  call.out = pass_.workspace.act + size_t(part.row) * pass_.act_width(index_) * pass_.t;
  call.ldo = pass_.act_width(index_);
  call.out_dtype = pass_.weights().dtype;
  call.out_tiles = pass_.row_tiles;
  pass_.kernels().Gemm(call);
}

// Rows without an adapter get the same bits as by RunFused: a sum does not depend on the cut, and
// the functions are those of the fused product.
void GateUpOperator::RunWithAdapters(const Part& part) {
  constexpr int32_t kCols = 256;                   // whole panels, and whole pieces of a row
  constexpr int32_t kRows = 4 * kRowTileRows;      // whole tiles
  constexpr int64_t kStride = kCols + kPanelCols;  // rows begin on different cache lines
  alignas(64) float gate[kRows * kStride];
  alignas(64) float up[kRows * kStride];
  for (int32_t row = part.row; row < part.row + part.m; row += kRows) {
    for (int32_t col = part.col_begin; col < part.col_end; col += kCols) {
      const Part piece = {row, std::min(kRows, part.row + part.m - row), col,
                          std::min(col + kCols, part.col_end)};
      Sums(piece, 0, gate, kStride);
      Sums(piece, padded_, up, kStride);
      StoreAct(piece, gate, up, kStride);
    }
  }
}

void GateUpOperator::Sums(const Part& part, int32_t up_begin, float* out, int64_t ldo) const {
  GemmCall call = CallOn(part, up_begin);
  call.out_begin = call.n_begin;
  call.out = out;
  call.ldo = ldo;
  pass_.kernels().Gemm(call);
  pass_.AddLora(LoraProduct::kGateUp, index_, range_.first, part.row, call);
}

// Stores piece by piece, since the pieces of a row in tiles are not adjacent.
void GateUpOperator::StoreAct(const Part& part, float* gate, const float* up, int64_t ld) const {
  const Activation activation = pass_.config().activation;
  const DType dtype = pass_.weights().dtype;
  for (int32_t i = 0; i < part.m; ++i) {
    for (int32_t col = part.col_begin, end = 0; col < part.col_end; col = end) {
      end = std::min(part.col_end, (col / kRowPiece + 1) * kRowPiece);
      const int64_t at = i * ld + (col - part.col_begin);
      std::byte* const out =
          pass_.At(pass_.workspace.act, part.row + i, col, pass_.act_width(index_));
      if (activation == Activation::kSilu) {
        pass_.kernels().SiluMul(gate + at, up + at, end - col, out, dtype);
        continue;
      }
      pass_.kernels().Activate(activation, gate + at, end - col, gate + at, DType::kF32);
      for (int64_t j = at; j < at + end - col; ++j) gate[j] *= up[j];
      pass_.kernels().Convert(gate + at, end - col, out, dtype);
    }
  }
}

}  // namespace skein
