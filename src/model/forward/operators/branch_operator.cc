#include "model/forward/operators/branch_operator.h"

namespace skein {

void BranchOperator::RunRows(int32_t begin, int32_t end) {
  const ModelConfig& c = pass_.config();
  const int64_t hidden = c.hidden_size;
  for (int64_t i = begin; i < end; ++i) {
    float* const branch = pass_.workspace.sums + i * hidden;
    const int64_t at = (range_.first + i) * hidden;
    const float* const x = pass_.workspace.*spec_.x + at;
    float* const out = pass_.workspace.x_out + at;
    if (!spec_.norm.empty()) {
      pass_.kernels().RmsNorm(branch, spec_.norm.data(), c.decoder.rms_norm_eps, c.hidden_size,
                              branch, DType::kF32, kRowPiece);
    }
    // A scale of 1 changes no bit.
    const float scale = c.decoder.residual_scale;
    for (int64_t d = 0; d < hidden; ++d) out[d] = x[d] + scale * branch[d];
  }
}

}  // namespace skein
