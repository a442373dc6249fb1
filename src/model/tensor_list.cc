#include "model/tensor_list.h"

namespace skein {
namespace {

void AddLayer(const ModelConfig& config, int32_t layer, std::vector<ModelTensor>* tensors) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  const int64_t hidden = config.hidden_size, mlp = config.intermediate_size;
  const int64_t q = int64_t{config.num_heads} * config.head_dim;
  const int64_t kv = int64_t{config.num_kv_heads} * config.head_dim;
  const auto norm = [&](const std::string& name, int64_t size) {
    tensors->push_back({prefix + name + ".weight", {size}, TensorRole::kNorm});
  };
  const auto linear = [&](const std::string& name, int64_t out, int64_t in, bool bias,
                          TensorRole role) {
    tensors->push_back({prefix + name + ".weight", {out, in}, role});
    if (bias) tensors->push_back({prefix + name + ".bias", {out}, TensorRole::kBias});
  };
  norm("input_layernorm", hidden);
  linear("self_attn.q_proj", q, hidden, config.qkv_bias, TensorRole::kInput);
  linear("self_attn.k_proj", kv, hidden, config.qkv_bias, TensorRole::kInput);
  linear("self_attn.v_proj", kv, hidden, config.qkv_bias, TensorRole::kInput);
  if (config.qk_norm) {
    norm("self_attn.q_norm", config.head_dim);
    norm("self_attn.k_norm", config.head_dim);
  }
  linear("self_attn.o_proj", hidden, q, config.o_bias, TensorRole::kOutput);
  norm("post_attention_layernorm", hidden);
  linear("mlp.gate_proj", mlp, hidden, config.mlp_bias, TensorRole::kInput);
  linear("mlp.up_proj", mlp, hidden, config.mlp_bias, TensorRole::kInput);
  linear("mlp.down_proj", hidden, mlp, config.mlp_bias, TensorRole::kOutput);
}

}  // namespace

std::vector<ModelTensor> ListTensors(const ModelConfig& config) {
  const int64_t vocab = config.vocab_size, hidden = config.hidden_size;
  std::vector<ModelTensor> tensors;
  tensors.push_back({"model.embed_tokens.weight", {vocab, hidden}, TensorRole::kEmbedding});
  for (int32_t layer = 0; layer < config.num_layers; ++layer) AddLayer(config, layer, &tensors);
  tensors.push_back({"model.norm.weight", {hidden}, TensorRole::kNorm});
  if (config.head == Head::kLanguageModel && !config.tie_embeddings) {
    tensors.push_back({"lm_head.weight", {vocab, hidden}, TensorRole::kEmbedding});
  }
  if (config.head == Head::kClassifier) {
    tensors.push_back({"score.weight", {config.num_classes, hidden}, TensorRole::kInput});
  }
  return tensors;
}

}  // namespace skein
