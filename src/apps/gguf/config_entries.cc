#include "apps/gguf/config_entries.h"

#include <string_view>
#include <utility>
#include <vector>

#include "model/config/rope.h"

namespace skein {
namespace {

bool SameRope(const RopeConfig& a, const RopeConfig& b) {
  if (a.type != b.type || a.theta != b.theta || a.rotated_part != b.rotated_part) return false;
  if (a.type == RopeType::kDefault) return true;
  if (a.factor != b.factor) return false;
  if (a.type == RopeType::kLinear) return true;
  return a.original_max_position == b.original_max_position &&
         a.low_freq_factor == b.low_freq_factor && a.high_freq_factor == b.high_freq_factor &&
         a.beta_fast == b.beta_fast && a.beta_slow == b.beta_slow &&
         a.attention_factor == b.attention_factor && a.mscale == b.mscale &&
         a.mscale_all_dim == b.mscale_all_dim && a.truncate == b.truncate &&
         a.short_factors == b.short_factors && a.long_factors == b.long_factors;
}

bool SameWindows(const LocalLayers& a, const LocalLayers& b) {
  if (a.layers != b.layers) return false;
  return a.layers.empty() ||
         (a.before == b.before && a.after == b.after && SameRope(a.rope, b.rope));
}

Architecture Family(Architecture architecture) {
  return architecture == Architecture::kMistral ? Architecture::kLlama : architecture;
}

}  // namespace

Result<const GgufArchitecture*> GgufArchitectureOf(const ModelConfig& config) {
  const std::string name = config.ArchitectureName();
  std::string known;
  for (const GgufArchitecture& architecture : GgufArchitectures()) {
    if (!architecture.is_written) continue;
    known += (known.empty() ? "" : ", ") + std::string(architecture.hugging_face);
  }
  const auto refuse = [](const std::string& problem) {
    return Status(StatusCode::kUnsupported, problem, "architectures");
  };
  if (config.is_encoder()) {
    return refuse("config.json: 'architectures' is " + name +
                  ", an encoder; GGUF is written of MistralForCausalLM, " + known);
  }
  if (config.head != Head::kLanguageModel) {
    return refuse("config.json: 'architectures' is " + name +
                  ", which predicts no tokens; GGUF is written of models with a language model's "
                  "head");
  }
  if (config.quantization.method != QuantizationMethod::kNone) {
    return Status(StatusCode::kUnsupported,
                  "config.json: 'quantization_config' is there; GGUF is written of bf16, f16 and "
                  "f32 weights",
                  "quantization_config");
  }
  for (const GgufArchitecture& architecture : GgufArchitectures()) {
    if (architecture.is_written &&
        NameOf(Family(config.architecture)) == std::string_view(architecture.hugging_face)) {
      return &architecture;
    }
  }
  return refuse("config.json: 'architectures' is " + name +
                "; GGUF is written of MistralForCausalLM, " + known);
}

void AddConfigEntries(const ModelConfig& config, const GgufArchitecture& architecture,
                      GgufEntries* entries) {
  const std::string prefix = std::string(architecture.name) + ".";
  const auto add = [&](const char* name, int32_t value) {
    entries->U32(prefix + name, static_cast<uint32_t>(value));
  };
  entries->Text("general.architecture", architecture.name);
  add("vocab_size", config.vocab_size);
  add("context_length", config.max_position);
  add("embedding_length", config.hidden_size);
  add("block_count", config.num_layers);
  add("feed_forward_length", config.intermediate_size);
  add("attention.head_count", config.num_heads);
  add("attention.head_count_kv", config.num_kv_heads);
  add("attention.key_length", config.head_dim);
  add("attention.value_length", config.head_dim);
  entries->F32(prefix + "attention.layer_norm_rms_epsilon", config.decoder.rms_norm_eps);
  // The Llama family has no entry for windows in GGUF. For models with windows, CheckReadsBack
  // reports the loss.
  const bool is_gemma2 = config.architecture == Architecture::kGemma2;
  if (is_gemma2 || config.architecture == Architecture::kGemma3) {
    add("attention.sliding_window",
        config.has_local_layers() ? config.local.window() : config.max_position);
  }
  // A file without these has the caps of the published models; CheckReadsBack reports the loss.
  if (is_gemma2 && config.decoder.score_cap > 0) {
    entries->F32(prefix + "attn_logit_softcapping", config.decoder.score_cap);
  }
  if (is_gemma2 && config.decoder.logits_cap > 0) {
    entries->F32(prefix + "final_logit_softcapping", config.decoder.logits_cap);
  }
  if (config.num_experts > 0) {
    add("expert_count", config.num_experts);
    add("expert_used_count", config.experts_per_token);
    // In other mixtures, an expert has the size of an MLP.
    const bool has_size = config.architecture == Architecture::kQwen3Moe ||
                          config.architecture == Architecture::kQwen2Moe;
    if (has_size) add("expert_feed_forward_length", config.expert_size);
    const int32_t shared = config.decoder.shared_expert_size;
    if (shared > 0) add("expert_shared_feed_forward_length", shared);
  }
  add("rope.dimension_count", config.head_dim);
  entries->F32(prefix + "rope.freq_base", static_cast<float>(config.rope.theta));
  const bool yarn = config.rope.type == RopeType::kYarn;
  if (!yarn && config.rope.type != RopeType::kLinear) return;
  entries->Text(prefix + "rope.scaling.type", yarn ? "yarn" : "linear");
  entries->F32(prefix + "rope.scaling.factor", static_cast<float>(config.rope.factor));
  if (yarn) add("rope.scaling.original_context_length", config.rope.original_max_position);
}

std::vector<float> RopeFactors(const ModelConfig& config) {
  std::vector<float> factors;
  if (config.rope.type != RopeType::kLlama3) return factors;
  RopeConfig plain = config.rope;
  plain.type = RopeType::kDefault;
  const RopeTable unscaled = MakeRopeTable(plain, config.head_dim);
  const RopeTable scaled = MakeRopeTable(config.rope, config.head_dim);
  for (size_t i = 0; i < unscaled.inv_freq.size(); ++i) {
    factors.push_back(static_cast<float>(unscaled.inv_freq[i] / scaled.inv_freq[i]));
  }
  return factors;
}

std::string FirstDifference(const ModelConfig& a, const ModelConfig& b) {
  const DecoderFields &x = a.decoder, &y = b.decoder;
  const std::pair<const char*, bool> kMembers[] = {
      {"architectures", Family(a.architecture) == Family(b.architecture) && a.head == b.head},
      {"vocab_size", a.vocab_size == b.vocab_size},
      {"hidden_size", a.hidden_size == b.hidden_size},
      {"intermediate_size", a.intermediate_size == b.intermediate_size},
      {"num_hidden_layers", a.num_layers == b.num_layers},
      {"num_attention_heads", a.num_heads == b.num_heads},
      {"num_key_value_heads", a.num_kv_heads == b.num_kv_heads},
      {"head_dim", a.head_dim == b.head_dim},
      {"max_position_embeddings", a.max_position == b.max_position},
      {"tie_word_embeddings", a.tie_embeddings == b.tie_embeddings},
      {"attention_bias", a.qkv_bias == b.qkv_bias && a.o_bias == b.o_bias},
      {"mlp_bias", a.mlp_bias == b.mlp_bias},
      {"rope_theta", a.rope.theta == b.rope.theta},
      {"rope_scaling", SameRope(a.rope, b.rope)},
      {"sliding_window", SameWindows(a.local, b.local)},
      {"use_bidirectional_attention", a.bidirectional == b.bidirectional},
      {"num_experts", a.num_experts == b.num_experts},
      {"num_experts_per_tok", a.experts_per_token == b.experts_per_token},
      {"moe_intermediate_size", a.expert_size == b.expert_size},
      {"shared_expert_intermediate_size", x.shared_expert_size == y.shared_expert_size},
      {"norm_topk_prob", a.norm_expert_weights == b.norm_expert_weights},
      {"mlp_only_layers or decoder_sparse_step", a.has_experts == b.has_experts},
      {"hidden_act", a.activation == b.activation},
      {"rms_norm_eps", x.rms_norm_eps == y.rms_norm_eps},
      {"query_pre_attn_scalar", x.attention_scale == y.attention_scale},
      {"embedding_multiplier", x.embedding_scale == y.embedding_scale &&
                                   x.rounds_embedding_scale == y.rounds_embedding_scale},
      {"residual_multiplier", x.residual_scale == y.residual_scale},
      {"logits_scaling", x.logits_divisor == y.logits_divisor},
      {"attn_logit_softcapping", x.score_cap == y.score_cap},
      {"final_logit_softcapping", x.logits_cap == y.logits_cap},
      {"no_rope_layers", x.unrotated_layers == y.unrotated_layers},
  };
  for (const auto& [name, same] : kMembers) {
    if (!same) return name;
  }
  return "";
}

}  // namespace skein
