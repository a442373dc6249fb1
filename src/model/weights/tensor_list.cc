#include "model/weights/tensor_list.h"

#include <string>
#include <utility>

#include "model/weights/decision_weights.h"
#include "model/weights/decoder_names.h"
#include "model/weights/encoder_names.h"

namespace skein {
namespace {

// Adds the tensors of a linear layer, except the norms of the residual and the output's matrix.
void AddLinear(const ModelConfig& config, const DecoderLayerNames& names,
               std::vector<ModelTensor>* tensors) {
  const LinearLayers& linear = config.decoder.linear;
  const int64_t hidden = config.hidden_size, heads = linear.num_v_heads;
  const auto input = [&](const std::string& name, int64_t rows) {
    if (!name.empty()) tensors->push_back({WeightName(name), {rows, hidden}, TensorRole::kInput});
  };
  input(names.linear_qkvz, linear.conv_width() + linear.v_width());
  input(names.linear_qkv, linear.conv_width());
  input(names.linear_z, linear.v_width());
  input(names.linear_ba, 2 * heads);
  input(names.linear_b, heads);
  input(names.linear_a, heads);
  tensors->push_back({names.conv, {linear.conv_width(), 1, kConvWidth}, TensorRole::kConv});
  tensors->push_back({names.a_log, {heads}, TensorRole::kDecay});
  tensors->push_back({names.dt_bias, {heads}, TensorRole::kBias});
  tensors->push_back({WeightName(names.linear_norm), {linear.v_dim}, TensorRole::kPlainNorm});
}

void AddLayer(const ModelConfig& config, int32_t layer, std::vector<ModelTensor>* tensors) {
  const DecoderLayerNames names = NamesOfDecoderLayer(config, layer);
  const int64_t hidden = config.hidden_size, mlp = config.MlpSize(layer);
  const int64_t q = int64_t{config.num_heads} * config.head_dim;
  const int64_t kv = int64_t{config.num_kv_heads} * config.head_dim;
  const auto norm = [&](const std::string& name, int64_t size) {
    if (!name.empty()) tensors->push_back({name + ".weight", {size}, TensorRole::kNorm});
  };
  const auto linear = [&](const std::string& name, int64_t out, int64_t in, bool bias,
                          TensorRole role) {
    if (name.empty()) return;
    tensors->push_back({name + ".weight", {out, in}, role});
    if (bias) tensors->push_back({name + ".bias", {out}, TensorRole::kBias});
  };
  norm(names.attn_norm, hidden);
  if (config.IsLinear(layer)) AddLinear(config, names, tensors);
  linear(names.qkv, q + 2 * kv, hidden, config.qkv_bias, TensorRole::kInput);
  // With a gate, q has the gate's rows, too, which are as many as its own.
  linear(names.q, config.decoder.attention_gate ? 2 * q : q, hidden, config.qkv_bias,
         TensorRole::kInput);
  linear(names.k, kv, hidden, config.qkv_bias, TensorRole::kInput);
  linear(names.v, kv, hidden, config.qkv_bias, TensorRole::kInput);
  norm(names.q_norm, config.decoder.qk_norm_spans_heads ? q : config.head_dim);
  norm(names.k_norm, config.decoder.qk_norm_spans_heads ? kv : config.head_dim);
  if (!names.sinks.empty())
    tensors->push_back({names.sinks, {config.num_heads}, TensorRole::kBias});
  linear(names.o, hidden, config.IsLinear(layer) ? config.decoder.linear.v_width() : q,
         config.o_bias, TensorRole::kOutput);
  norm(names.post_attn_norm, hidden);
  norm(names.mlp_norm, hidden);
  norm(names.post_mlp_norm, hidden);
  if (!names.experts.empty()) {
    const bool bias = config.decoder.expert_bias;
    linear(names.router, config.num_experts, hidden, bias, TensorRole::kInput);
    for (int32_t i = 0; i < config.num_experts; ++i) {
      const std::string expert = names.experts + std::to_string(i) + ".";
      linear(expert + "gate_proj", config.expert_size, hidden, bias, TensorRole::kInput);
      linear(expert + "up_proj", config.expert_size, hidden, bias, TensorRole::kInput);
      linear(expert + "down_proj", hidden, config.expert_size, bias, TensorRole::kOutput);
    }
    linear(names.shared_gate, 1, hidden, false, TensorRole::kInput);
  }
  linear(names.gate_up, 2 * mlp, hidden, config.mlp_bias, TensorRole::kInput);
  linear(names.gate, mlp, hidden, config.mlp_bias, TensorRole::kInput);
  linear(names.up, mlp, hidden, config.mlp_bias, TensorRole::kInput);
  linear(names.down, hidden, mlp, config.mlp_bias, TensorRole::kOutput);
}

class EncoderLister {
 public:
  explicit EncoderLister(const ModelConfig& config) : config_(config) {}

  std::vector<ModelTensor> List() {
    config_.is_bert_family() ? ListBert() : ListModernBert();
    return std::move(tensors_);
  }

 private:
  void ListBert() {
    const int64_t hidden = config_.hidden_size, mlp = config_.intermediate_size;
    const EncoderNames names = NamesOfEncoder(config_);
    Table(names.words, config_.vocab_size);
    if (!names.positions.empty()) {
      Table(names.positions, int64_t{config_.max_position} + config_.encoder.first_position);
    }
    if (!names.segments.empty()) Table(names.segments, config_.encoder.num_segments);
    if (!names.distances.empty()) {
      Table(names.distances, config_.encoder.relative.num_rows());
      if (config_.encoder.relative.normed) Norm(names.distance_norm);
    }
    if (!names.distance_bias.empty()) {
      Linear(names.distance_bias, config_.encoder.relative_bias.num_buckets, config_.num_heads,
             TensorRole::kEmbedding, false);
    }
    Norm(names.norm);
    for (int32_t i = 0; i < config_.num_layers; ++i) {
      const EncoderLayerNames layer = NamesOfEncoderLayer(config_, i);
      if (config_.encoder.rotates) {
        AddRotatingLayer(layer);
        continue;
      }
      for (const std::string& name : {layer.query, layer.key, layer.value}) {
        Linear(name, hidden, hidden, TensorRole::kInput);
      }
      if (!names.distances.empty() && !config_.encoder.relative.shares_projections) {
        Linear(layer.distance_key, hidden, hidden, TensorRole::kInput);
        Linear(layer.distance_query, hidden, hidden, TensorRole::kInput);
      }
      Linear(layer.attn_out, hidden, hidden, TensorRole::kOutput);
      Norm(layer.attn_norm);
      Linear(layer.up, mlp, hidden, TensorRole::kInput);
      Linear(layer.down, hidden, mlp, TensorRole::kOutput);
      Norm(layer.mlp_norm);
    }
    if (config_.head == Head::kClassifier) {
      Linear(names.head_dense, hidden, hidden, TensorRole::kInput);
      Linear(names.head_out, config_.num_classes, hidden, TensorRole::kInput);
    }
    if (config_.head == Head::kMaskedLanguageModel) {
      AddMaskedHead(names.head_dense, names.head_norm, names.decoder, names.decoder_bias);
    }
    if (config_.encoder.token_width > 0) {
      Linear("linear", config_.encoder.token_width, hidden, TensorRole::kInput, false);
    }
  }

  void AddMaskedHead(const std::string& dense, const std::string& norm, const std::string& decoder,
                     const std::string& decoder_bias) {
    Linear(dense, config_.hidden_size, config_.hidden_size, TensorRole::kInput,
           config_.encoder.head_bias);
    Norm(norm, config_.encoder.norm_bias);
    if (!config_.tie_embeddings) Table(decoder, config_.vocab_size);
    if (!config_.encoder.output_bias) return;
    tensors_.push_back({decoder_bias, {config_.vocab_size}, TensorRole::kBias});
  }

  void AddRotatingLayer(const EncoderLayerNames& layer) {
    const int64_t hidden = config_.hidden_size, mlp = config_.intermediate_size;
    const auto input = [&](const std::string& name, int64_t out, bool bias) {
      if (!name.empty()) Linear(name, out, hidden, TensorRole::kInput, bias);
    };
    input(layer.qkv, 3 * hidden, config_.qkv_bias);
    for (const std::string& name : {layer.query, layer.key, layer.value}) {
      input(name, hidden, config_.qkv_bias);
    }
    Linear(layer.attn_out, hidden, hidden, TensorRole::kOutput, config_.o_bias);
    Norm(layer.attn_norm);
    input(layer.up_gate, 2 * mlp, false);
    input(layer.gate, mlp, false);
    input(layer.up, mlp, false);
    Linear(layer.down, hidden, mlp, TensorRole::kOutput, config_.mlp_bias);
    Norm(layer.mlp_norm);
  }

  void ListModernBert() {
    const int64_t hidden = config_.hidden_size, mlp = config_.intermediate_size;
    const ModernBertNames names = NamesOfModernBert(config_);
    Table(names.words, config_.vocab_size);
    for (int32_t i = 0; i < config_.num_base_layers(); ++i) {
      const ModernBertLayerNames layer = NamesOfModernBertLayer(config_, i);
      Norm(layer.attn_norm, config_.encoder.norm_bias);
      Linear(layer.qkv, 3 * hidden, hidden, TensorRole::kInput, config_.qkv_bias);
      Linear(layer.attn_out, hidden, hidden, TensorRole::kOutput, config_.o_bias);
      Norm(layer.mlp_norm, config_.encoder.norm_bias);
      Linear(layer.gate_up, 2 * mlp, hidden, TensorRole::kInput, config_.mlp_bias);
      Linear(layer.down, hidden, mlp, TensorRole::kOutput, config_.mlp_bias);
    }
    Norm(names.final_norm, config_.encoder.norm_bias);
    if (config_.head == Head::kDecision) {
      for (ModelTensor& tensor : ListDecisionTensors(config_)) {
        tensors_.push_back(std::move(tensor));
      }
    }
    if (config_.head == Head::kMaskedLanguageModel) {
      AddMaskedHead(names.head_dense, names.head_norm, names.decoder, names.decoder + ".bias");
    }
    if (config_.head != Head::kClassifier) return;
    Linear(names.head_dense, hidden, hidden, TensorRole::kInput, config_.encoder.head_bias);
    Norm(names.head_norm, config_.encoder.norm_bias);
    Linear(names.head_out, config_.num_classes, hidden, TensorRole::kInput);
  }

  void Table(const std::string& name, int64_t rows) {
    tensors_.push_back({name + ".weight", {rows, config_.hidden_size}, TensorRole::kEmbedding});
  }
  void Norm(const std::string& name, bool bias = true) {
    tensors_.push_back({name + ".weight", {config_.hidden_size}, TensorRole::kNorm});
    if (bias) tensors_.push_back({name + ".bias", {config_.hidden_size}, TensorRole::kBias});
  }
  void Linear(const std::string& name, int64_t out, int64_t in, TensorRole role, bool bias = true) {
    tensors_.push_back({name + ".weight", {out, in}, role});
    if (bias) tensors_.push_back({name + ".bias", {out}, TensorRole::kBias});
  }

  const ModelConfig& config_;
  std::vector<ModelTensor> tensors_;
};

}  // namespace

std::vector<ModelTensor> ListTensors(const ModelConfig& config) {
  if (config.is_encoder()) return EncoderLister(config).List();
  const int64_t vocab = config.vocab_size, hidden = config.hidden_size;
  std::vector<ModelTensor> tensors;
  tensors.push_back({WeightName(kDecoderEmbedding), {vocab, hidden}, TensorRole::kEmbedding});
  for (int32_t layer = 0; layer < config.num_layers; ++layer) AddLayer(config, layer, &tensors);
  tensors.push_back({WeightName(kDecoderNorm), {hidden}, TensorRole::kNorm});
  if (config.has_output_matrix() && !config.tie_embeddings) {
    tensors.push_back({WeightName(kDecoderOutput), {vocab, hidden}, TensorRole::kEmbedding});
  }
  if (config.decoder.reward_mlp) {
    const int64_t sizes[] = {hidden, config.num_classes};
    for (const int layer : {0, 2}) {
      const std::string name = "score." + std::to_string(layer);
      tensors.push_back({name + ".weight", {sizes[layer / 2], hidden}, TensorRole::kInput});
      tensors.push_back({name + ".bias", {sizes[layer / 2]}, TensorRole::kBias});
    }
  } else if (config.head == Head::kDecision) {
    for (ModelTensor& tensor : ListDecisionTensors(config)) tensors.push_back(std::move(tensor));
  } else if (config.head == Head::kClassifier) {
    tensors.push_back({"score.weight", {config.num_classes, hidden}, TensorRole::kInput});
  }
  return tensors;
}

}  // namespace skein
