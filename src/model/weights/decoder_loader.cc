#include "model/weights/decoder_loader.h"

#include <cmath>
#include <cstring>

namespace skein {

Status DecoderLoader::Walk() {
  for (int32_t i = 0; i < config_.num_layers; ++i) {
    SKEIN_RETURN_IF_ERROR(WalkLayer(NamesOfDecoderLayer(config_, i), weights_.layers[i]));
  }
  SKEIN_RETURN_IF_ERROR(Norm(std::string(kDecoderNorm), config_.hidden_size, weights_.final_norm));
  return WalkVocabulary();
}

Status DecoderLoader::WalkLayer(const DecoderLayerNames& names, LayerWeights& layer) {
  const int32_t hidden = config_.hidden_size;
  SKEIN_RETURN_IF_ERROR(Norm(names.attn_norm, hidden, layer.attn_norm));
  SKEIN_RETURN_IF_ERROR(names.conv.empty() ? WalkAttention(names, layer)
                                           : WalkLinear(names, layer));
  SKEIN_RETURN_IF_ERROR(Norm(names.post_attn_norm, hidden, layer.post_attn_norm));
  SKEIN_RETURN_IF_ERROR(Norm(names.mlp_norm, hidden, layer.mlp_norm));
  SKEIN_RETURN_IF_ERROR(names.experts.empty() ? WalkMlp(names, config_.intermediate_size, layer)
                                              : WalkExperts(names, layer));
  return Norm(names.post_mlp_norm, hidden, layer.post_mlp_norm);
}

std::vector<TensorPart> DecoderLoader::PartsOfQkv(const DecoderLayerNames& names,
                                                  std::vector<TensorPart>* gate) const {
  const int32_t head = config_.head_dim;
  const int32_t q = config_.num_heads * head, kv = config_.num_kv_heads * head;
  if (!names.qkv.empty()) return {{names.qkv, 0, q + 2 * kv}};
  std::vector<TensorPart> parts;
  if (gate == nullptr) {
    parts.push_back({names.q, 0, q});
  } else {
    for (int32_t row = 0; row < q; row += head) {
      parts.push_back({names.q, row, head, 2 * row, 2 * q});
      gate->push_back({names.q, row, head, 2 * row + head, 2 * q});
    }
  }
  parts.push_back({names.k, q, kv});
  parts.push_back({names.v, q + kv, kv});
  return parts;
}

Status DecoderLoader::WalkAttention(const DecoderLayerNames& names, LayerWeights& layer) {
  const int32_t hidden = config_.hidden_size;
  const int32_t q = config_.num_heads * config_.head_dim;
  const int32_t kv = config_.num_kv_heads * config_.head_dim;
  const bool gated = config_.decoder.attention_gate;
  std::vector<TensorPart> gate;
  const std::vector<TensorPart> parts = PartsOfQkv(names, gated ? &gate : nullptr);
  SKEIN_RETURN_IF_ERROR(loader_.Matrix(parts, q + 2 * kv, hidden, layer.qkv));
  if (gated) SKEIN_RETURN_IF_ERROR(loader_.Matrix(gate, q, hidden, layer.attn_gate));
  if (config_.qkv_bias) SKEIN_RETURN_IF_ERROR(loader_.Bias(parts, q + 2 * kv, layer.qkv_bias));
  const bool spans = config_.decoder.qk_norm_spans_heads;
  SKEIN_RETURN_IF_ERROR(Norm(names.q_norm, spans ? q : config_.head_dim, layer.q_norm));
  SKEIN_RETURN_IF_ERROR(Norm(names.k_norm, spans ? kv : config_.head_dim, layer.k_norm));
  if (!names.sinks.empty()) {
    SKEIN_RETURN_IF_ERROR(loader_.Vector(names.sinks, config_.num_heads, layer.sinks));
  }
  const std::vector<TensorPart> o = {{names.o, 0, hidden}};
  SKEIN_RETURN_IF_ERROR(loader_.Matrix(o, hidden, q, layer.o));
  return config_.o_bias ? loader_.Bias(o, hidden, layer.o_bias) : Status::Ok();
}

std::vector<TensorPart> DecoderLoader::PartsOfLinear(const DecoderLayerNames& names) const {
  const LinearLayers& shape = config_.decoder.linear;
  const int32_t heads = shape.num_v_heads;
  const int32_t conv = shape.conv_width(), b = conv + shape.v_width(), a = b + heads;
  // The rows of one head of k: its q and k, then the v of its heads of v, then their z. In the
  // other matrix: the b of these heads, then their a.
  const int32_t k = shape.k_dim, k_width = shape.k_width();
  const int32_t own = heads / shape.num_k_heads, v = own * shape.v_dim;
  std::vector<TensorPart> parts;
  if (names.linear_qkvz.empty()) {
    parts = {{names.linear_qkv, 0, conv}, {names.linear_z, conv, shape.v_width()}};
  }
  if (names.linear_ba.empty()) {
    parts.push_back({names.linear_b, b, heads});
    parts.push_back({names.linear_a, a, heads});
  }
  for (int32_t head = 0; head < shape.num_k_heads; ++head) {
    const int32_t from = head * (2 * k + 2 * v), from_ba = head * 2 * own;
    if (!names.linear_qkvz.empty()) {
      parts.push_back({names.linear_qkvz, head * k, k, from, b});
      parts.push_back({names.linear_qkvz, k_width + head * k, k, from + k, b});
      parts.push_back({names.linear_qkvz, 2 * k_width + head * v, v, from + 2 * k, b});
      parts.push_back({names.linear_qkvz, conv + head * v, v, from + 2 * k + v, b});
    }
    if (names.linear_ba.empty()) continue;
    parts.push_back({names.linear_ba, b + head * own, own, from_ba, 2 * heads});
    parts.push_back({names.linear_ba, a + head * own, own, from_ba + own, 2 * heads});
  }
  return parts;
}

Status DecoderLoader::WalkLinear(const DecoderLayerNames& names, LayerWeights& layer) {
  const LinearLayers& shape = config_.decoder.linear;
  const int32_t hidden = config_.hidden_size, heads = shape.num_v_heads;
  const int32_t conv = shape.conv_width();
  LinearWeights& linear = layer.linear;
  SKEIN_RETURN_IF_ERROR(loader_.Matrix(PartsOfLinear(names), shape.width(), hidden, linear.in));
  std::vector<float> taps;  // [conv_width, kConvWidth]
  SKEIN_RETURN_IF_ERROR(loader_.Tensor(names.conv, {conv, 1, kConvWidth}, taps));
  linear.conv.resize(taps.size());
  for (size_t i = 0; i < taps.size(); ++i) {
    linear.conv[i % kConvWidth * conv + i / kConvWidth] = taps[i];
  }
  SKEIN_RETURN_IF_ERROR(loader_.Vector(names.a_log, heads, linear.a_log));
  if (loader_.files().is_gguf()) SKEIN_RETURN_IF_ERROR(TakeLogOfRates(names.a_log, linear.a_log));
  SKEIN_RETURN_IF_ERROR(loader_.Vector(names.dt_bias, heads, linear.dt_bias));
  SKEIN_RETURN_IF_ERROR(loader_.Vector(WeightName(names.linear_norm), shape.v_dim, linear.norm));
  return loader_.Matrix({{names.o, 0, hidden}}, hidden, shape.v_width(), layer.o);
}

Status TakeLogOfRates(const std::string& name, std::span<float> rates) {
  for (float& rate : rates) {
    if (!(rate < 0)) {
      return Status(StatusCode::kInvalidArgument, "tensor " + name + " of a GGUF file holds " +
                                                      std::to_string(rate) +
                                                      "; the rates of decay must be below 0");
    }
    rate = static_cast<float>(std::log(-double{rate}));
  }
  return Status::Ok();
}

Status DecoderLoader::WalkMlp(const DecoderLayerNames& names, int32_t mlp, LayerWeights& layer) {
  const int32_t hidden = config_.hidden_size, padded = Padded(mlp);
  const std::vector<TensorPart> gate_up =
      names.gate_up.empty() ? std::vector<TensorPart>{{names.gate, 0, mlp}, {names.up, padded, mlp}}
                            : std::vector<TensorPart>{{names.gate_up, 0, mlp, 0, 2 * mlp},
                                                      {names.gate_up, padded, mlp, mlp, 2 * mlp}};
  SKEIN_RETURN_IF_ERROR(loader_.Matrix(gate_up, 2 * padded, hidden, layer.gate_up));
  const std::vector<TensorPart> down = {{names.down, 0, hidden}};
  SKEIN_RETURN_IF_ERROR(loader_.Matrix(down, hidden, mlp, layer.down));
  if (!config_.mlp_bias) return Status::Ok();
  SKEIN_RETURN_IF_ERROR(loader_.Bias(gate_up, 2 * padded, layer.gate_up_bias));
  return loader_.Bias(down, hidden, layer.down_bias);
}

Status DecoderLoader::WalkExperts(const DecoderLayerNames& names, LayerWeights& layer) {
  const int32_t hidden = config_.hidden_size, size = config_.expert_size;
  const int32_t padded = config_.expert_padded();
  const bool biased = config_.decoder.expert_bias;
  // Never rounded, since a small error may choose other experts.
  SKEIN_RETURN_IF_ERROR(loader_.Linear({{names.router, 0, config_.num_experts}},
                                       config_.num_experts, hidden, layer.router, layer.router_bias,
                                       biased));
  layer.experts.resize(config_.num_experts);
  for (int32_t i = 0; i < config_.num_experts; ++i) {
    const std::string expert = names.experts + std::to_string(i) + ".";
    ExpertWeights& weights = layer.experts[i];
    const std::vector<TensorPart> gate_up = {{expert + "gate_proj", 0, size},
                                             {expert + "up_proj", padded, size}};
    const std::vector<TensorPart> down = {{expert + "down_proj", 0, hidden}};
    SKEIN_RETURN_IF_ERROR(loader_.Matrix(gate_up, 2 * padded, hidden, weights.gate_up));
    SKEIN_RETURN_IF_ERROR(loader_.Matrix(down, hidden, size, weights.down));
    if (!biased) continue;
    SKEIN_RETURN_IF_ERROR(loader_.Bias(gate_up, 2 * padded, weights.gate_up_bias));
    SKEIN_RETURN_IF_ERROR(loader_.Bias(down, hidden, weights.down_bias));
  }
  if (names.shared_gate.empty()) return Status::Ok();
  // Never rounded, like the router.
  SKEIN_RETURN_IF_ERROR(
      loader_.PlainMatrix({{names.shared_gate, 0, 1}}, 1, hidden, layer.shared_gate));
  return WalkMlp(names, config_.decoder.shared_expert_size, layer);
}

Status DecoderLoader::WalkVocabulary() {
  const int32_t vocab = config_.vocab_size, hidden = config_.hidden_size;
  const std::string table = WeightName(kDecoderEmbedding);
  if (!config_.has_output_matrix()) {
    SKEIN_RETURN_IF_ERROR(loader_.Embedding(table, &weights_));
    return config_.head == Head::kClassifier ? WalkClassifier() : Status::Ok();
  }
  if (config_.tie_embeddings) {
    // The output matrix is tied, but some writers store it again.
    loader_.Skip(WeightName(kDecoderOutput));
    return loader_.Matrix({{std::string(kDecoderEmbedding), 0, vocab}}, vocab, hidden,
                          weights_.output);
  }
  SKEIN_RETURN_IF_ERROR(loader_.Embedding(table, &weights_));
  return loader_.Matrix({{std::string(kDecoderOutput), 0, vocab}}, vocab, hidden, weights_.output);
}

Status DecoderLoader::WalkClassifier() {
  const int32_t hidden = config_.hidden_size, classes = config_.num_classes;
  if (config_.decoder.reward_mlp) {
    weights_.head_activation = Activation::kRelu;
    SKEIN_RETURN_IF_ERROR(loader_.Linear({{"score.0", 0, hidden}}, hidden, hidden,
                                         weights_.head_dense, weights_.head_dense_bias));
    return loader_.Linear({{"score.2", 0, classes}}, classes, hidden, weights_.head_out,
                          weights_.head_out_bias);
  }
  return loader_.Linear({{"score", 0, classes}}, classes, hidden, weights_.head_out,
                        weights_.head_out_bias, loader_.files().Has("score.bias"));
}

Status DecoderLoader::Norm(const std::string& name, int32_t size, std::vector<float>& weight) {
  if (name.empty()) return Status::Ok();
  // A GGUF file stores the gains themselves, without the offset.
  const float offset = loader_.files().is_gguf() ? 0 : config_.decoder.norm_offset;
  return loader_.Vector(WeightName(name), size, weight, offset);
}

bool HasOwnOutputMatrix(const ModelFiles& files) {
  const std::string matrix = WeightName(kDecoderOutput);
  if (files.is_gguf() || !files.Has(matrix)) return false;
  Result<TensorView> output = files.Find(matrix);
  Result<TensorView> embedding = files.Find(WeightName(kDecoderEmbedding));
  if (!output.ok() || !embedding.ok() || output->shape != embedding->shape) return false;
  return output->dtype != embedding->dtype || output->bytes != embedding->bytes ||
         std::memcmp(output->data, embedding->data, output->bytes) != 0;
}

}  // namespace skein
