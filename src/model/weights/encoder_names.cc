#include "model/weights/encoder_names.h"

#include <string_view>

namespace skein {
namespace {

// The prefix of the encoder's tensors in a model with a head.
std::string Prefix(const ModelConfig& config) {
  if (config.head == Head::kNone || config.head == Head::kMaskedLanguageModel ||
      config.head == Head::kTokenVectors || config.encoder.rotates) {
    return config.encoder.tensor_prefix;
  }
  switch (config.architecture) {
    case Architecture::kBert:
      return "bert.";
    case Architecture::kDistilBert:
      return "distilbert.";
    case Architecture::kDebertaV2:
      return "deberta.";
    case Architecture::kMpnet:
      return "mpnet.";
    default:
      return "roberta.";
  }
}

// Sets the names of the head that predicts masked tokens.
void NameMaskedHead(const ModelConfig& config, EncoderNames* names) {
  names->head_activation = config.activation;
  switch (config.architecture) {
    case Architecture::kBert:
      names->head_dense = "cls.predictions.transform.dense";
      names->head_norm = "cls.predictions.transform.LayerNorm";
      names->decoder = "cls.predictions.decoder";
      names->decoder_bias = "cls.predictions.bias";
      return;
    case Architecture::kDistilBert:
      names->head_dense = "vocab_transform";
      names->head_norm = "vocab_layer_norm";
      names->decoder = "vocab_projector";
      names->decoder_bias = "vocab_projector.bias";
      return;
    default:
      break;
  }
  const bool gte = config.architecture == Architecture::kGte;
  names->head_activation = Activation::kGelu;
  names->head_dense = "lm_head.dense";
  names->head_norm = gte ? "lm_head.norm" : "lm_head.layer_norm";
  names->decoder = "lm_head.decoder";
  names->decoder_bias = "lm_head.bias";
}

// A layer of NomicBERT or GTE, as transformers names its tensors, or as their publishers do.
EncoderLayerNames NamesOfRotatingLayer(const ModelConfig& config, int32_t layer) {
  const bool nomic = config.architecture == Architecture::kNomicBert;
  const std::string number = std::to_string(layer) + ".";
  EncoderLayerNames names;
  if (config.encoder.library_names) {
    const std::string at = Prefix(config) + "layers." + number;
    names.query = at + "self_attn.q_proj";
    names.key = at + "self_attn.k_proj";
    names.value = at + "self_attn.v_proj";
    names.attn_out = at + "self_attn.o_proj";
    names.attn_norm = at + "post_attention_layernorm";
    names.gate = at + "mlp.gate_proj";
    names.up = at + "mlp.up_proj";
    names.down = at + "mlp.down_proj";
    names.mlp_norm = at + "post_mlp_layernorm";
    return names;
  }
  const std::string at = Prefix(config) + (nomic ? "encoder.layers." : "encoder.layer.") + number;
  names.qkv = at + (nomic ? "attn.Wqkv" : "attention.qkv_proj");
  names.attn_out = at + (nomic ? "attn.out_proj" : "attention.o_proj");
  names.attn_norm = at + (nomic ? "norm1" : "attn_ln");
  names.down = at + (nomic ? "mlp.fc2" : "mlp.down_proj");
  names.mlp_norm = at + (nomic ? "norm2" : "mlp_ln");
  if (nomic) {
    names.up = at + "mlp.fc11";
    names.gate = at + "mlp.fc12";
  } else {
    names.up_gate = at + "mlp.up_gate_proj";
  }
  return names;
}

}  // namespace

EncoderNames NamesOfEncoder(const ModelConfig& config) {
  const std::string prefix = Prefix(config);
  const std::string embeddings = prefix + "embeddings.";
  EncoderNames names = {
      .words = embeddings + "word_embeddings",
      .norm = embeddings + "LayerNorm",
  };
  if (!config.encoder.rotates && config.encoder.has_positions) {
    names.positions = embeddings + "position_embeddings";
  }
  if (config.architecture == Architecture::kNomicBert && !config.encoder.library_names) {
    names.norm = prefix + "emb_ln";
  }
  if (config.encoder.num_segments > 0) names.segments = embeddings + "token_type_embeddings";
  if (config.encoder.relative.span > 0) {
    names.distances = prefix + "encoder.rel_embeddings";
    names.distance_norm = prefix + "encoder.LayerNorm";
  }
  if (config.encoder.relative_bias.num_buckets > 0) {
    names.distance_bias = prefix + "encoder.relative_attention_bias";
  }
  if (config.head == Head::kMaskedLanguageModel) NameMaskedHead(config, &names);
  if (config.head != Head::kClassifier) return names;
  names.head_activation = Activation::kTanh;
  switch (config.architecture) {
    case Architecture::kBert:
    case Architecture::kGte:
      names.head_dense = prefix + "pooler.dense";
      names.head_out = "classifier";
      break;
    case Architecture::kDebertaV2:
      names.head_dense = "pooler.dense";
      names.head_activation = config.encoder.head_activation;
      names.head_out = "classifier";
      break;
    case Architecture::kDistilBert:
      names.head_dense = "pre_classifier";
      names.head_activation = Activation::kRelu;
      names.head_out = "classifier";
      break;
    default:
      names.head_dense = "classifier.dense";
      names.head_out = "classifier.out_proj";
      break;
  }
  return names;
}

EncoderLayerNames NamesOfEncoderLayer(const ModelConfig& config, int32_t layer) {
  if (config.architecture == Architecture::kDistilBert) {
    const std::string at = Prefix(config) + "transformer.layer." + std::to_string(layer) + ".";
    return {at + "attention.q_lin",   at + "attention.k_lin",  at + "attention.v_lin",
            at + "attention.out_lin", at + "sa_layer_norm",    at + "ffn.lin1",
            at + "ffn.lin2",          at + "output_layer_norm"};
  }
  if (config.encoder.rotates) return NamesOfRotatingLayer(config, layer);
  const std::string at = Prefix(config) + "encoder.layer." + std::to_string(layer) + ".";
  const bool relative = config.encoder.relative.span > 0;
  const std::string suffix = relative ? "_proj" : "";
  EncoderLayerNames names = {at + "attention.self.query" + suffix,
                             at + "attention.self.key" + suffix,
                             at + "attention.self.value" + suffix,
                             at + "attention.output.dense",
                             at + "attention.output.LayerNorm",
                             at + "intermediate.dense",
                             at + "output.dense",
                             at + "output.LayerNorm"};
  if (config.architecture == Architecture::kMpnet) {
    names.query = at + "attention.attn.q";
    names.key = at + "attention.attn.k";
    names.value = at + "attention.attn.v";
    names.attn_out = at + "attention.attn.o";
    names.attn_norm = at + "attention.LayerNorm";
  }
  if (!relative) return names;
  const bool shares = config.encoder.relative.shares_projections;
  names.distance_key = shares ? names.key : at + "attention.self.pos_key_proj";
  names.distance_query = shares ? names.query : at + "attention.self.pos_query_proj";
  return names;
}

ModernBertNames NamesOfModernBert(const ModelConfig& config) {
  ModernBertNames names = {.words = config.encoder.tensor_prefix + "embeddings.tok_embeddings",
                           .final_norm = config.encoder.tensor_prefix + "final_norm"};
  const bool masked = config.head == Head::kMaskedLanguageModel;
  if (config.head != Head::kClassifier && !masked) return names;
  names.head_dense = "head.dense";
  names.head_norm = "head.norm";
  if (masked) {
    names.decoder = "decoder";
    return names;
  }
  names.head_out = "classifier";
  return names;
}

ModernBertLayerNames NamesOfModernBertLayer(const ModelConfig& config, int32_t layer) {
  const std::string at = config.encoder.tensor_prefix + "layers." + std::to_string(layer) + ".";
  return {layer == 0 ? config.encoder.tensor_prefix + "embeddings.norm" : at + "attn_norm",
          at + "attn.Wqkv",
          at + "attn.Wo",
          at + "mlp_norm",
          at + "mlp.Wi",
          at + "mlp.Wo"};
}

bool IsUnusedByEncoder(const ModelConfig& config, const std::string& name) {
  if (config.decision.is_compact()) return true;  // the base model's other layers, and its heads
  if (config.head == Head::kDecision) {
    // The other tensors are the head's; its temperature is in the config.
    return !name.starts_with(config.encoder.tensor_prefix);
  }
  // Old checkpoints store the positions 0, 1, 2, ...
  if (name.ends_with("embeddings.position_ids")) return true;
  if (config.head == Head::kClassifier) return false;
  // Only a classifier reads the pooler. The other tensors are heads that predict masked tokens.
  const std::string pooler = config.encoder.tensor_prefix + "pooler.";
  if (config.encoder.rotates && name.starts_with("classifier.")) return true;
  for (const std::string_view unused :
       {std::string_view(pooler), std::string_view("pooler."), std::string_view("cls."),
        std::string_view("lm_head."), std::string_view("vocab_"), std::string_view("head."),
        std::string_view("decoder."), std::string_view("lm_predictions."),
        std::string_view("mask_predictions.")}) {
    if (name.starts_with(unused)) return true;
  }
  return false;
}

}  // namespace skein
