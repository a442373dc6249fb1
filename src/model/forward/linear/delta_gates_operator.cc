#include "model/forward/linear/delta_gates_operator.h"

#include <cmath>

namespace skein {
namespace {

// log(1 + e^x) without overflow.
double Softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

}  // namespace

DeltaGatesOperator::DeltaGatesOperator(PassState& pass, int32_t layer)
    : RowOperator(pass), weights_(pass.weights().layers[layer].linear) {
  for (const float a_log : weights_.a_log) rate_.push_back(std::exp(double{a_log}));
}

void DeltaGatesOperator::RunRows(int32_t begin, int32_t end) {
  const LinearLayers& shape = pass_.config().decoder.linear;
  for (int64_t i = begin; i < end; ++i) {
    float* const b =
        pass_.workspace.sums + i * shape.width() + shape.conv_width() + shape.v_width();
    float* const a = b + shape.num_v_heads;
    for (int32_t h = 0; h < shape.num_v_heads; ++h) {
      const double step = Softplus(double{a[h]} + double{weights_.dt_bias[h]});
      b[h] = static_cast<float>(1 / (1 + std::exp(-double{b[h]})));
      a[h] = static_cast<float>(std::exp(-rate_[h] * step));
    }
  }
}

}  // namespace skein
