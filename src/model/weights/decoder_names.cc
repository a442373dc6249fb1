#include "model/weights/decoder_names.h"

#include "model/config/decoder_family.h"
#include "model/weights/joint_head_weights.h"

namespace skein {

namespace {

void NameLinear(const ModelConfig& config, const std::string& layer, DecoderLayerNames* names) {
  const std::string linear = layer + "linear_attn.";
  if (config.decoder.linear.fused_qkvz) {
    names->linear_qkvz = linear + "in_proj_qkvz";
  } else {
    names->linear_qkv = linear + "in_proj_qkv";
    names->linear_z = linear + "in_proj_z";
  }
  if (config.decoder.linear.fused_ba) {
    names->linear_ba = linear + "in_proj_ba";
  } else {
    names->linear_b = linear + "in_proj_b";
    names->linear_a = linear + "in_proj_a";
  }
  names->conv = linear + "conv1d.weight";
  names->a_log = linear + "A_log";
  names->dt_bias = linear + "dt_bias";
  names->linear_norm = linear + "norm";
  names->o = linear + "out_proj";
}

void NameAttention(const ModelConfig& config, const std::string& layer, DecoderLayerNames* names) {
  const std::string attn = layer + "self_attn.";
  if (config.decoder.fused_projections) {
    names->qkv = attn + "qkv_proj";
  } else {
    names->q = attn + "q_proj";
    names->k = attn + "k_proj";
    names->v = attn + "v_proj";
  }
  if (config.decoder.qk_norm) {
    names->q_norm = attn + "q_norm";
    names->k_norm = attn + "k_norm";
  }
  if (config.decoder.attention_sinks) names->sinks = attn + "sinks";
  names->o = attn + "o_proj";
}

}  // namespace

DecoderLayerNames NamesOfDecoderLayer(const ModelConfig& config, int32_t layer) {
  const std::string at = "model.layers." + std::to_string(layer) + ".";
  const std::string mlp = at + "mlp.";
  DecoderLayerNames names;
  const NormPlacement norms = config.decoder.norms;
  if (norms != NormPlacement::kBehind) names.attn_norm = at + "input_layernorm";
  if (norms == NormPlacement::kBefore) {
    names.mlp_norm = at + "post_attention_layernorm";
  } else {
    names.post_attn_norm = at + "post_attention_layernorm";
    names.post_mlp_norm = at + "post_feedforward_layernorm";
  }
  if (norms == NormPlacement::kAround) names.mlp_norm = at + "pre_feedforward_layernorm";
  if (config.IsLinear(layer)) {
    NameLinear(config, at, &names);
  } else {
    NameAttention(config, at, &names);
  }
  std::string shared;
  if (config.HasExperts(layer)) {
    names.router = mlp + (config.architecture == Architecture::kGptOss ? "router" : "gate");
    names.experts = mlp + "experts.";
    if (config.MlpSize(layer) == 0) return names;
    names.shared_gate = mlp + "shared_expert_gate";
    shared = "shared_expert.";
  }
  names.down = mlp + shared + "down_proj";
  if (config.decoder.fused_projections) {
    names.gate_up = mlp + "gate_up_proj";
  } else {
    names.gate = mlp + shared + "gate_proj";
    names.up = mlp + shared + "up_proj";
  }
  return names;
}

bool IsUnusedByDecoder(const ModelConfig& config, const std::string& name) {
  if (config.decision.is_joint() && name.starts_with(kJointHeadPrefix)) return true;
  if (config.decision.is_compact()) return true;  // the base model's other layers and its output
  // Old checkpoints store the frequencies of the rotation, which follow from the config.
  if (name.ends_with(".rotary_emb.inv_freq")) return true;
  // The config states the first of these tensors of GGUF files, modules.json the others.
  if (name == "rope_freqs.weight" || name == "dense_2.weight" || name == "dense_3.weight") {
    return true;
  }
  // The layers that predict further tokens, and the part that reads images.
  if (FamilyOf(config.architecture).has_linear_layers) {
    return name.starts_with("mtp.") || name.find("visual.") != std::string::npos;
  }
  // These are the part of a multimodal model that reads images.
  return config.architecture == Architecture::kGemma3 &&
         (name.find("vision_tower.") != std::string::npos ||
          name.find("multi_modal_projector.") != std::string::npos);
}

}  // namespace skein
