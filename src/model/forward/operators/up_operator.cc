#include "model/forward/operators/up_operator.h"

#include <algorithm>

namespace skein {

UpOperator::UpOperator(PassState& pass, int32_t layer)
    : pass_(pass),
      layer_(pass.weights().layers[layer]),
      activation_(pass.config().IsHeadLayer(layer) ? pass.config().decision.activation
                                                   : pass.config().activation),
      cutter_(
          pass.Cutter(pass.Shape(layer_.gate_up.n(), layer_.gate_up.k(), layer_.gate_up.dtype()))) {
}

int32_t UpOperator::Begin(OperatorRange range) {
  range_ = range;
  cut_ = cutter_.Cut(range.count);
  return cut_.num_tickets();
}

void UpOperator::Run(int32_t ticket) {
  const int64_t padded = layer_.gate_up.n();
  const int32_t row = cut_.row_begin(ticket);
  const int32_t col = cut_.col_begin(ticket);
  GemmCall call =
      pass_.CallOn(layer_.gate_up, {&ForwardWorkspace::h, layer_.gate_up.k()}, range_.first, row);
  call.m = std::min(cut_.rows, range_.count - row);
  call.n_begin = col;
  call.n_end = std::min(col + cut_.cols, layer_.gate_up.n());
  call.bias = layer_.gate_up_bias.data();
  call.activation = activation_;
  call.out = pass_.workspace.act + row * padded * pass_.t;
  call.ldo = padded;
  call.out_dtype = pass_.weights().dtype;
  pass_.kernels().Gemm(call);
}

}  // namespace skein
