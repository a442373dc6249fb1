#include "model/forward/linear/conv_operator.h"

#include <cmath>

namespace skein {

// x / sqrt(sum + eps) = x / sqrt(mean + eps / n) / sqrt(n): an RMSNorm.
ConvOperator::ConvOperator(PassState& pass, int32_t layer)
    : pass_(pass),
      weights_(pass.weights().layers[layer].linear),
      shape_(pass.config().decoder.linear),
      rows_(pass, layer),
      q_gain_(shape_.k_dim, 1.0f / static_cast<float>(shape_.k_dim)),
      k_gain_(shape_.k_dim, static_cast<float>(1.0 / std::sqrt(double(shape_.k_dim)))) {}

int32_t ConvOperator::Begin(OperatorRange range) {
  rows_.Begin(range);
  return 2 * shape_.num_k_heads + shape_.num_v_heads;
}

void ConvOperator::Run(int32_t ticket) {
  const int32_t num_qk = 2 * shape_.num_k_heads;
  const bool is_v = ticket >= num_qk;
  const int32_t n = is_v ? shape_.v_dim : shape_.k_dim;
  const int32_t column =
      is_v ? num_qk * shape_.k_dim + (ticket - num_qk) * n : ticket * shape_.k_dim;
  const std::vector<float>& gain = ticket < shape_.num_k_heads ? q_gain_ : k_gain_;
  const int64_t width = shape_.width();
  alignas(64) float state[(kConvWidth - 1) * kMaxDeltaDim];
  const auto run = [&](int32_t first, int32_t count) {
    float* x = pass_.workspace.sums + first * width + column;
    pass_.kernels().Conv({.x = x,
                          .ldx = width,
                          .num_tokens = count,
                          .n = n,
                          .weight = weights_.conv.data() + column,
                          .ldw = shape_.conv_width(),
                          .state = state});
    for (int32_t t = 0; t < count && !is_v; ++t, x += width) {
      pass_.kernels().RmsNorm(x, gain.data(), kDeltaLengthEps / static_cast<float>(n), n, x,
                              DType::kF32, kRowPiece);
    }
  };
  rows_.Walk(int64_t{kConvWidth - 1} * column, int64_t{kConvWidth - 1} * n, state, run);
}

}  // namespace skein
