#include "model/forward/linear/gated_norm_operator.h"

namespace skein {

GatedNormOperator::GatedNormOperator(PassState& pass, int32_t layer)
    : RowOperator(pass), weights_(pass.weights().layers[layer].linear) {}

void GatedNormOperator::RunRows(int32_t begin, int32_t end) {
  const LinearLayers& shape = pass_.config().decoder.linear;
  const float eps = pass_.config().decoder.rms_norm_eps;
  const DType dtype = pass_.weights().dtype;
  const int32_t v_width = shape.v_width();
  const int32_t piece = pass_.row_tiles ? kRowPiece : shape.v_dim;
  for (int64_t i = begin; i < end; ++i) {
    float* const v = pass_.workspace.sums + i * shape.width() + 2 * shape.k_width();
    const float* const z = v + v_width;
    for (int32_t column = 0; column < v_width; column += shape.v_dim) {
      pass_.kernels().RmsNorm(v + column, weights_.norm.data(), eps, shape.v_dim, v + column,
                              DType::kF32, kRowPiece);
    }
    for (int32_t column = 0; column < v_width; column += piece) {
      std::byte* const out = pass_.At(pass_.workspace.attn, range_.first + i, column, v_width);
      pass_.kernels().SiluMul(z + column, v + column, piece, out, dtype);
    }
  }
}

}  // namespace skein
