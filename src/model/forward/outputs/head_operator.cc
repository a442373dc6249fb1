#include "model/forward/outputs/head_operator.h"

namespace skein {

void HeadOperator::RunRows(int32_t begin, int32_t end) {
  const ModelWeights& w = pass_.weights();
  const int32_t hidden = w.config.hidden_size;
  // The sums use the memory of the outputs, which are computed later.
  GemmCall call = pass_.CallOn(w.head_dense, {&ForwardWorkspace::logit_h, hidden}, 0, begin);
  call.m = end - begin;
  call.n_end = w.head_dense.n();
  call.bias = w.head_dense_bias.empty() ? nullptr : w.head_dense_bias.data();
  call.activation = w.head_activation;
  call.out = pass_.Output(begin);
  call.ldo = static_cast<int64_t>(pass_.workspace.output_width);
  pass_.kernels().Gemm(call);
  for (int32_t i = begin; i < end; ++i) {
    float* const sums = pass_.Output(i);
    std::byte* const h = pass_.workspace.logit_h + size_t(i) * hidden * pass_.t;
    if (w.head_norm.empty()) {
      pass_.kernels().Convert(sums, hidden, h, w.dtype);
      continue;
    }
    pass_.kernels().LayerNorm(sums, w.head_norm.data(), w.head_norm_bias.data(),
                              w.config.encoder.layer_norm_eps, hidden, h, w.dtype);
  }
}

}  // namespace skein
