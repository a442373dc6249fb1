#include "model/forward/operators/gate_up_operator.h"

#include <algorithm>

namespace skein {
namespace {

ProductShape GateUpShape(const PassState& pass, const PackedWeight& w) {
  ProductShape shape = pass.Shape(pass.config().intermediate_padded(), w.k(), w.dtype());
  shape.swiglu = true;
  return shape;
}

}  // namespace

GateUpOperator::GateUpOperator(PassState& pass, const LayerWeights& layer)
    : pass_(pass), layer_(layer), cutter_(pass.Cutter(GateUpShape(pass, layer.gate_up))) {}

int32_t GateUpOperator::Begin(OperatorRange range) {
  range_ = range;
  cut_ = cutter_.Cut(range.count);
  return cut_.num_tickets();
}

void GateUpOperator::Run(int32_t ticket) {
  const int32_t padded = pass_.config().intermediate_padded();
  const int32_t row = cut_.row_begin(ticket);
  const int32_t col = cut_.col_begin(ticket);
  const Operand h = {&ForwardWorkspace::h, pass_.config().hidden_size, false, pass_.row_tiles};
  GemmCall call = pass_.CallOn(layer_.gate_up, h, range_.first, row);
  call.m = std::min(cut_.rows, range_.count - row);
  call.n_begin = col;
  call.n_end = std::min(col + cut_.cols, padded);
  call.bias = layer_.gate_up_bias.empty() ? nullptr : layer_.gate_up_bias.data();
  call.up_begin = padded;
  call.out = pass_.workspace.act + size_t(row) * pass_.act_width() * pass_.t;
  call.ldo = pass_.act_width();
  call.out_dtype = pass_.weights().dtype;
  call.out_tiles = pass_.row_tiles;
  pass_.kernels().Gemm(call);
}

}  // namespace skein
