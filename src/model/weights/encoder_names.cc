#include "model/weights/encoder_names.h"

namespace skein {
namespace {

// The member that holds the encoder in a model with a head.
std::string Prefix(const ModelConfig& config) {
  if (config.head == Head::kNone) return "";
  switch (config.architecture) {
    case Architecture::kBert:
      return "bert.";
    case Architecture::kDistilBert:
      return "distilbert.";
    default:
      return "roberta.";
  }
}

}  // namespace

EncoderNames NamesOfEncoder(const ModelConfig& config) {
  const std::string prefix = Prefix(config);
  const std::string embeddings = prefix + "embeddings.";
  EncoderNames names = {
      .words = embeddings + "word_embeddings",
      .positions = embeddings + "position_embeddings",
      .norm = embeddings + "LayerNorm",
  };
  if (config.num_segments > 0) names.segments = embeddings + "token_type_embeddings";
  if (config.head != Head::kClassifier) return names;
  names.head_activation = Activation::kTanh;
  switch (config.architecture) {
    case Architecture::kBert:
      names.head_dense = prefix + "pooler.dense";
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
  const std::string at = Prefix(config) + "encoder.layer." + std::to_string(layer) + ".";
  return {at + "attention.self.query",
          at + "attention.self.key",
          at + "attention.self.value",
          at + "attention.output.dense",
          at + "attention.output.LayerNorm",
          at + "intermediate.dense",
          at + "output.dense",
          at + "output.LayerNorm"};
}

}  // namespace skein
