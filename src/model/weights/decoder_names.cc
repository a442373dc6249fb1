#include "model/weights/decoder_names.h"

namespace skein {

DecoderLayerNames NamesOfDecoderLayer(const ModelConfig& config, int32_t layer) {
  const std::string at = "model.layers." + std::to_string(layer) + ".";
  const std::string attn = at + "self_attn.", mlp = at + "mlp.";
  DecoderLayerNames names;
  names.attn_norm = at + "input_layernorm";
  names.mlp_norm = at + "post_attention_layernorm";
  names.q = attn + "q_proj";
  names.k = attn + "k_proj";
  names.v = attn + "v_proj";
  if (config.decoder.qk_norm) {
    names.q_norm = attn + "q_norm";
    names.k_norm = attn + "k_norm";
  }
  names.o = attn + "o_proj";
  names.down = mlp + "down_proj";
  if (config.HasExperts(layer)) {
    names.router = mlp + "gate";
    names.experts = mlp + "experts.";
  }
  names.gate = mlp + "gate_proj";
  names.up = mlp + "up_proj";
  return names;
}

bool IsUnusedByDecoder(const ModelConfig&, const std::string& name) {
  // Old checkpoints store the rotation's frequencies, which follow from the config.
  return name.ends_with(".rotary_emb.inv_freq");
}

}  // namespace skein
