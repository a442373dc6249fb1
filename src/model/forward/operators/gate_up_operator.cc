#include "model/forward/operators/gate_up_operator.h"

#include <algorithm>

#include "kernels/row_tiles.h"

namespace skein {
namespace {

ProductShape GateUpShape(const PassState& pass, const PackedWeight& w) {
  ProductShape shape = pass.Shape(pass.config().intermediate_padded(), w.k(), w.dtype());
  shape.swiglu = true;
  return shape;
}

}  // namespace

GateUpOperator::GateUpOperator(PassState& pass, int32_t layer)
    : pass_(pass),
      index_(layer),
      layer_(pass.weights().layers[layer]),
      cutter_(pass.Cutter(GateUpShape(pass, layer_.gate_up))) {}

int32_t GateUpOperator::Begin(OperatorRange range) {
  range_ = range;
  cut_ = cutter_.Cut(range.count);
  return cut_.num_tickets();
}

void GateUpOperator::Run(int32_t ticket) {
  const int32_t row = cut_.row_begin(ticket), col = cut_.col_begin(ticket);
  const Part part = {row, std::min(cut_.rows, range_.count - row), col,
                     std::min(col + cut_.cols, pass_.config().intermediate_padded())};
  HasAdapters(part) ? RunWithAdapters(part) : RunFused(part);
}

bool GateUpOperator::HasAdapters(const Part& part) const {
  if (!pass_.layout.has_adapters()) return false;
  for (int32_t i = 0; i < part.m; ++i) {
    if (pass_.layout.AdapterAt(range_.first + part.row + i) != 0) return true;
  }
  return false;
}

void GateUpOperator::RunFused(const Part& part) {
  GemmCall call = pass_.CallOn(layer_.gate_up, pass_.NormedRows(), range_.first, part.row);
  call.m = part.m;
  call.n_begin = part.col_begin;
  call.n_end = part.col_end;
  call.bias = layer_.gate_up_bias.empty() ? nullptr : layer_.gate_up_bias.data();
  call.up_begin = pass_.config().intermediate_padded();
  call.out = pass_.workspace.act + size_t(part.row) * pass_.act_width() * pass_.t;
  call.ldo = pass_.act_width();
  call.out_dtype = pass_.weights().dtype;
  call.out_tiles = pass_.row_tiles;
  pass_.kernels().Gemm(call);
}

// The bits of rows without an adapter are those of RunFused: a sum does not depend on the cut, and
// SiluMul is the function that the fused product applies.
void GateUpOperator::RunWithAdapters(const Part& part) {
  constexpr int32_t kCols = 256;                   // whole panels, and whole pieces of a row
  constexpr int32_t kRows = 4 * kRowTileRows;      // whole tiles
  constexpr int64_t kStride = kCols + kPanelCols;  // rows begin on different lines of the cache
  alignas(64) float gate[kRows * kStride];
  alignas(64) float up[kRows * kStride];
  const int32_t padded = pass_.config().intermediate_padded();
  for (int32_t row = part.row; row < part.row + part.m; row += kRows) {
    for (int32_t col = part.col_begin; col < part.col_end; col += kCols) {
      const Part piece = {row, std::min(kRows, part.row + part.m - row), col,
                          std::min(col + kCols, part.col_end)};
      Sums(piece, 0, gate, kStride);
      Sums(piece, padded, up, kStride);
      for (int32_t i = 0; i < piece.m; ++i) {
        // In tiles the pieces of a row are apart.
        for (int32_t c = col; c < piece.col_end;) {
          const int32_t end = std::min(piece.col_end, (c / kRowPiece + 1) * kRowPiece);
          const int64_t at = i * kStride + (c - col);
          pass_.kernels().SiluMul(gate + at, up + at, end - c,
                                  pass_.At(pass_.workspace.act, row + i, c, pass_.act_width()),
                                  pass_.weights().dtype);
          c = end;
        }
      }
    }
  }
}

void GateUpOperator::Sums(const Part& part, int32_t up_begin, float* out, int64_t ldo) {
  GemmCall call = pass_.CallOn(layer_.gate_up, pass_.NormedRows(), range_.first, part.row);
  call.m = part.m;
  call.n_begin = call.out_begin = up_begin + part.col_begin;
  call.n_end = up_begin + part.col_end;
  call.bias = layer_.gate_up_bias.empty() ? nullptr : layer_.gate_up_bias.data();
  call.out = out;
  call.ldo = ldo;
  pass_.kernels().Gemm(call);
  pass_.AddLora(LoraProduct::kGateUp, index_, range_.first, part.row, call);
}

}  // namespace skein
