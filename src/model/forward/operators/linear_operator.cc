#include "model/forward/operators/linear_operator.h"

#include <algorithm>

namespace skein {

LinearOperator::LinearOperator(PassState& pass, const LinearSpec& spec)
    : pass_(pass),
      spec_(spec),
      cutter_(pass.Cutter(pass.Shape(spec.weight.n(), spec.weight.k(), spec.weight.dtype()))) {}

int32_t LinearOperator::Begin(OperatorRange range) {
  range_ = range;
  cut_ = cutter_.Cut(range.count);
  return cut_.num_tickets();
}

const float* LinearOperator::bias() const {
  return spec_.bias == nullptr || spec_.bias->empty() ? nullptr : spec_.bias->data();
}

void LinearOperator::CopyResidual(int32_t ticket) const {
  const int64_t hidden = pass_.config().hidden_size;
  const float* x = pass_.workspace.x + range_.first * hidden;
  float* out = pass_.workspace.x_out + range_.first * hidden;
  if (out == x) return;
  const int32_t row = cut_.row_begin(ticket), col = cut_.col_begin(ticket);
  const int32_t cols = std::min(cut_.cols, pass_.config().hidden_size - col);
  for (int64_t i = row; i < std::min(row + cut_.rows, range_.count); ++i) {
    std::copy_n(x + i * hidden + col, cols, out + i * hidden + col);
  }
}

LinearOperator::Target LinearOperator::TargetOf() const {
  const ForwardWorkspace& w = pass_.workspace;
  const int64_t hidden = pass_.config().hidden_size;
  switch (spec_.output) {
    case LinearOutput::kOutputs:
      return {pass_.Output(0), static_cast<int64_t>(w.output_width), false};
    case LinearOutput::kBranch:
      return {w.sums, hidden, false};
    case LinearOutput::kQkv:
      return {w.sums, pass_.qkv_width(), false};
    case LinearOutput::kSums:
      return {w.sums, spec_.weight.n(), false};
    case LinearOutput::kNewResidual:
    case LinearOutput::kResidual:
      break;
  }
  return {w.x_out + range_.first * hidden, hidden, true};
}

void LinearOperator::Run(int32_t ticket) {
  if (spec_.output == LinearOutput::kNewResidual) CopyResidual(ticket);
  const int64_t row = cut_.row_begin(ticket);
  const int32_t col = cut_.col_begin(ticket);
  const Target target = TargetOf();
  GemmCall call = pass_.CallOn(spec_.weight, spec_.in, range_.first, row);
  call.m = std::min(cut_.rows, range_.count - static_cast<int32_t>(row));
  call.n_begin = col;
  call.n_end = std::min(col + cut_.cols, spec_.weight.n());
  call.bias = bias();
  call.add_to_out = target.adds;
  call.out = target.out + row * target.ldo;
  call.ldo = target.ldo;
  pass_.kernels().Gemm(call);
  if (spec_.are_logits) pass_.FinishLogits(call);
  if (spec_.layer < 0) return;
  pass_.AddLora(spec_.product, spec_.layer, range_.first, static_cast<int32_t>(row), call);
}

}  // namespace skein
