#include "model/forward/operators/output_norm_operator.h"

#include <algorithm>

#include "model/forward/operators/final_norm.h"

namespace skein {

int32_t OutputNormOperator::Begin(OperatorRange range) {
  range_ = range;
  return CeilDiv(range.count, kTokensPerTicket);
}

void OutputNormOperator::Run(int32_t ticket) {
  const int32_t hidden = pass_.config().hidden_size;
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, range_.count);
  const bool classes = kind_ == OutputKind::kClasses;
  for (int32_t i = begin; i < end; ++i) {
    std::byte* h = pass_.workspace.logit_h + size_t(i) * hidden * pass_.t;
    FinalNormRow(pass_, pass_.layout.OutputToken(kind_, range_.first + i), h,
                 pass_.weights().dtype);
    // A classifier's head is never int8.
    if (pass_.int8() && !classes) pass_.Quantize(i, h, hidden);
  }
  if (classes && pass_.weights().head_dense.n() > 0) HeadDense(begin, end);
}

// Puts outputs [begin, end) of the chunk through the layer before a classifier's last one.
void OutputNormOperator::HeadDense(int32_t begin, int32_t end) {
  const ModelWeights& w = pass_.weights();
  const int64_t hidden = pass_.config().hidden_size;
  // The sums lie where the outputs will: those are not computed yet.
  float* sums = pass_.Output(begin);
  const auto width = static_cast<int64_t>(pass_.workspace.output_width);
  GemmCall call = pass_.CallOn(w.head_dense, {&ForwardWorkspace::logit_h, hidden}, 0, begin);
  call.m = end - begin;
  call.n_end = w.head_dense.n();
  call.bias = w.head_dense_bias.data();
  call.out = sums;
  call.ldo = width;
  pass_.kernels().Gemm(call);
  for (int64_t i = 0; i < end - begin; ++i) {
    std::byte* h = pass_.workspace.logit_h + (begin + i) * hidden * static_cast<int64_t>(pass_.t);
    pass_.kernels().Activate(w.head_activation, sums + i * width, pass_.config().hidden_size, h,
                             w.dtype);
  }
}

}  // namespace skein
