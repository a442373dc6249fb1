#include "model/forward/experts/shared_expert_operator.h"

#include <cmath>

namespace skein {

void SharedExpertOperator::RunRows(int32_t begin, int32_t end) {
  const int64_t hidden = pass_.config().hidden_size;
  const ForwardWorkspace& w = pass_.workspace;
  // The router's logits are not needed any more.
  float* const gates = w.expert_sums.router;
  GemmCall call =
      pass_.CallOn(layer_.shared_gate, {&ForwardWorkspace::h, hidden}, range_.first, begin);
  call.m = end - begin;
  call.n_end = 1;
  call.out = gates + begin;
  call.ldo = 1;
  pass_.kernels().Gemm(call);
  for (int64_t i = begin; i < end; ++i) {
    const auto weight = static_cast<float>(1 / (1 + std::exp(-double{gates[i]})));
    const float* const out = w.sums + i * hidden;
    float* const x = w.x_out + (range_.first + i) * hidden;
    for (int64_t d = 0; d < hidden; ++d) x[d] += weight * out[d];
  }
}

}  // namespace skein
