#include "model/forward/outputs/final_norm.h"

namespace skein {

void FinalNormRow(const PassState& pass, int32_t token, void* out, DType dtype) {
  const ModelWeights& w = pass.weights();
  const ModelConfig& c = w.config;
  const float* x = pass.workspace.x + int64_t{pass.layout.ActiveIndex(token)} * c.hidden_size;
  if (c.is_encoder()) {
    pass.kernels().LayerNorm(x, w.final_norm.data(), w.final_norm_bias.data(),
                             c.LayerNormEps(c.num_layers), c.hidden_size, out, dtype);
  } else {
    pass.kernels().RmsNorm(x, w.final_norm.data(), c.decoder.rms_norm_eps, c.hidden_size, out,
                           dtype, kRowPiece);
  }
}

}  // namespace skein
