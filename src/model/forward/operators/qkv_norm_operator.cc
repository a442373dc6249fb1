#include "model/forward/operators/qkv_norm_operator.h"

namespace skein {

QkvNormOperator::QkvNormOperator(PassState& pass, int32_t layer)
    : RowOperator(pass), layer_(pass.weights().layers[layer]), heads_(pass, layer) {}

void QkvNormOperator::RunRows(int32_t begin, int32_t end) {
  const int32_t q_width = pass_.q_width(), width = pass_.qkv_width();
  const int32_t k_width = (width - q_width) / 2;
  const float eps = pass_.config().decoder.rms_norm_eps;
  float* const rows = pass_.workspace.sums + int64_t{begin} * width;
  for (int32_t i = 0; i < end - begin; ++i) {
    float* const q = rows + int64_t{i} * width;
    float* const k = q + q_width;
    pass_.kernels().RmsNorm(q, layer_.q_norm.data(), eps, q_width, q, DType::kF32, kRowPiece);
    pass_.kernels().RmsNorm(k, layer_.k_norm.data(), eps, k_width, k, DType::kF32, kRowPiece);
  }
  heads_.Store({begin, end}, {0, width}, range_.first, rows, width);
}

}  // namespace skein
