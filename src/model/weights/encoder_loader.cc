#include "model/weights/encoder_loader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

namespace skein {
namespace {

// Whether two matrices of the files differ.
bool Differ(const ModelFiles& files, const std::string& a, const std::string& b) {
  Result<TensorView> x = files.Find(a), y = files.Find(b);
  if (!x.ok() || !y.ok() || x->shape != y->shape || x->dtype != y->dtype) return true;
  return std::memcmp(x->data, y->data, x->bytes) != 0;
}

}  // namespace

Status EncoderLoader::WalkBert() {
  const EncoderNames names = NamesOfEncoder(config_);
  const int32_t hidden = config_.hidden_size;
  const MaskedHead masked = {names.head_dense, names.head_norm, names.decoder, names.decoder_bias,
                             names.head_activation};
  SKEIN_RETURN_IF_ERROR(WalkWords(names.words, masked));
  if (!names.positions.empty()) {
    SKEIN_RETURN_IF_ERROR(loader_.FloatTable(names.positions, config_.encoder.first_position,
                                             config_.max_position, config_.hidden_size,
                                             weights_.positions));
  }
  if (!names.segments.empty()) {
    SKEIN_RETURN_IF_ERROR(loader_.FloatTable(names.segments, 0, config_.encoder.num_segments,
                                             config_.hidden_size, weights_.segments));
  }
  if (!names.distances.empty()) SKEIN_RETURN_IF_ERROR(WalkDistances(names));
  if (!names.distance_bias.empty()) SKEIN_RETURN_IF_ERROR(WalkDistanceBias(names.distance_bias));
  std::string norm = names.norm;  // the norm of the layer's input
  for (int32_t i = 0; i < config_.num_layers; ++i) {
    LayerWeights& layer = weights_.layers[i];
    const EncoderLayerNames layer_names = NamesOfEncoderLayer(config_, i);
    SKEIN_RETURN_IF_ERROR(Norm(norm, layer.attn_norm, layer.attn_norm_bias));
    SKEIN_RETURN_IF_ERROR(config_.encoder.rotates ? WalkRotatingLayer(layer_names, layer)
                                                  : WalkBertLayer(layer_names, layer));
    if (!names.distances.empty()) SKEIN_RETURN_IF_ERROR(WalkDistanceLayer(layer_names, layer));
    norm = layer_names.mlp_norm;
  }
  SKEIN_RETURN_IF_ERROR(Norm(norm, weights_.final_norm, weights_.final_norm_bias));
  if (config_.head == Head::kMaskedLanguageModel) return WalkMaskedHead(masked);
  if (config_.encoder.token_width > 0) return WalkProjection();
  if (config_.head != Head::kClassifier) return Status::Ok();
  weights_.head_activation = names.head_activation;
  SKEIN_RETURN_IF_ERROR(loader_.Linear({{names.head_dense, 0, hidden}}, hidden, hidden,
                                       weights_.head_dense, weights_.head_dense_bias));
  return loader_.Linear({{names.head_out, 0, config_.num_classes}}, config_.num_classes, hidden,
                        weights_.head_out, weights_.head_out_bias);
}

// Reads the words' embedding, and the output matrix of a head that predicts masked tokens. If the
// two are tied, only the output matrix is read. Files may have a copy of a tied matrix; one that
// differs is used, as by the reference library.
Status EncoderLoader::WalkWords(const std::string& words, const MaskedHead& head) {
  if (config_.head != Head::kMaskedLanguageModel) {
    return loader_.Embedding(words + ".weight", &weights_);
  }
  const int32_t vocab = config_.vocab_size, hidden = config_.hidden_size;
  const std::string own = head.decoder + ".weight";
  const ModelFiles& files = loader_.files();
  const bool tied =
      files.Has(own) ? !Differ(files, words + ".weight", own) : config_.tie_embeddings;
  if (tied) return loader_.PlainMatrix({{words, 0, vocab}}, vocab, hidden, weights_.output);
  SKEIN_RETURN_IF_ERROR(loader_.Embedding(words + ".weight", &weights_));
  return loader_.PlainMatrix({{head.decoder, 0, vocab}}, vocab, hidden, weights_.output);
}

Status EncoderLoader::WalkMaskedHead(const MaskedHead& head) {
  const int32_t hidden = config_.hidden_size;
  weights_.head_activation = head.activation;
  SKEIN_RETURN_IF_ERROR(loader_.Linear({{head.dense, 0, hidden}}, hidden, hidden,
                                       weights_.head_dense, weights_.head_dense_bias,
                                       config_.encoder.head_bias));
  SKEIN_RETURN_IF_ERROR(Norm(head.norm, weights_.head_norm, weights_.head_norm_bias));
  if (!config_.encoder.output_bias) return Status::Ok();
  // If the matrices are not tied, nor are the biases, and only the decoder's are used.
  const ModelFiles& files = loader_.files();
  const std::string own = head.decoder + ".bias";
  const bool has_own = files.Has(own) && (!config_.tie_embeddings || !files.Has(head.decoder_bias));
  return loader_.Vector(has_own ? own : head.decoder_bias, config_.vocab_size,
                        weights_.output_bias);
}

// Reads ColBERT's projection of the tokens' states.
Status EncoderLoader::WalkProjection() {
  const int32_t width = config_.encoder.token_width;
  DenseWeights dense;
  SKEIN_RETURN_IF_ERROR(
      loader_.PlainMatrix({{"linear", 0, width}}, width, config_.hidden_size, dense.weight));
  if (!loader_.checking()) weights_.embedding_dense.push_back(std::move(dense));
  return Status::Ok();
}

Status EncoderLoader::WalkBertLayer(const EncoderLayerNames& names, LayerWeights& layer) {
  const int32_t hidden = config_.hidden_size;
  const int32_t mlp = config_.intermediate_size;
  SKEIN_RETURN_IF_ERROR(LayerLinear(
      {{names.query, 0, hidden}, {names.key, hidden, hidden}, {names.value, 2 * hidden, hidden}},
      3 * hidden, hidden, layer.qkv, layer.qkv_bias));
  SKEIN_RETURN_IF_ERROR(
      LayerLinear({{names.attn_out, 0, hidden}}, hidden, hidden, layer.o, layer.o_bias));
  SKEIN_RETURN_IF_ERROR(Norm(names.attn_norm, layer.mlp_norm, layer.mlp_norm_bias));
  SKEIN_RETURN_IF_ERROR(LayerLinear({{names.up, 0, mlp}}, config_.intermediate_padded(), hidden,
                                    layer.gate_up, layer.gate_up_bias));
  return LayerLinear({{names.down, 0, hidden}}, hidden, mlp, layer.down, layer.down_bias);
}

Status EncoderLoader::WalkDistances(const EncoderNames& names) {
  const int32_t hidden = config_.hidden_size, rows = config_.encoder.relative.num_rows();
  SKEIN_RETURN_IF_ERROR(loader_.FloatTable(names.distances, 0, rows, hidden, distances_));
  if (!config_.encoder.relative.normed) return Status::Ok();
  std::vector<float> gain, bias;
  SKEIN_RETURN_IF_ERROR(Norm(names.distance_norm, gain, bias));
  if (loader_.checking()) return Status::Ok();
  for (int32_t row = 0; row < rows; ++row) {
    const std::span<float> x = std::span(distances_).subspan(size_t(row) * hidden, hidden);
    double sum = 0, squares = 0;
    for (const float element : x) sum += element;
    const double mean = sum / hidden;
    for (const float element : x) squares += (element - mean) * (element - mean);
    const double inverse = 1 / std::sqrt(squares / hidden + config_.encoder.layer_norm_eps);
    for (int32_t i = 0; i < hidden; ++i) {
      x[i] = static_cast<float>((x[i] - mean) * inverse * gain[i] + bias[i]);
    }
  }
  return Status::Ok();
}

// Reads RelativeBias, which the files have as [num_buckets, num_heads]. Attention adds it before it
// scales the scores.
Status EncoderLoader::WalkDistanceBias(const std::string& name) {
  const int32_t buckets = config_.encoder.relative_bias.num_buckets, heads = config_.num_heads;
  std::vector<float> table;
  SKEIN_RETURN_IF_ERROR(loader_.FloatTable(name, 0, buckets, heads, table));
  if (loader_.checking()) return Status::Ok();
  const double divisor = std::sqrt(static_cast<double>(config_.head_dim));
  for (int32_t head = 0; head < heads; ++head) {
    for (int32_t bucket = 0; bucket < buckets; ++bucket) {
      const double bias = table[size_t(bucket) * heads + head];
      weights_.distance_bias.push_back(static_cast<float>(bias * divisor));
    }
  }
  return Status::Ok();
}

Status EncoderLoader::WalkDistanceLayer(const EncoderLayerNames& names, LayerWeights& layer) {
  SKEIN_RETURN_IF_ERROR(ProjectDistances(names.distance_key, layer.distance_keys));
  return ProjectDistances(names.distance_query, layer.distance_queries);
}

// The table does not change, so its rows are projected once.
Status EncoderLoader::ProjectDistances(const std::string& name, PackedWeight& out) {
  const int32_t hidden = config_.hidden_size, head_dim = config_.head_dim;
  const int32_t rows = config_.encoder.relative.num_rows();
  std::vector<float> projected;  // [rows, num_heads, head_dim]
  SKEIN_RETURN_IF_ERROR(loader_.Product(distances_, name, hidden, hidden, projected));
  if (loader_.checking()) return Status::Ok();
  out = PackedWeight(config_.num_heads * rows, head_dim, loader_.dtype());
  std::vector<float> head(size_t(rows) * head_dim);
  for (int32_t h = 0; h < config_.num_heads; ++h) {
    for (int32_t row = 0; row < rows; ++row) {
      std::copy_n(&projected[size_t(row) * hidden + h * head_dim], head_dim,
                  &head[size_t(row) * head_dim]);
    }
    out.PackRows(h * rows, rows, head.data(), DType::kF32);
  }
  return Status::Ok();
}

Status EncoderLoader::WalkRotatingLayer(const EncoderLayerNames& names, LayerWeights& layer) {
  const int32_t hidden = config_.hidden_size, mlp = config_.intermediate_size;
  const int32_t padded = config_.intermediate_padded();
  const std::vector<TensorPart> qkv =
      names.qkv.empty() ? std::vector<TensorPart>{{names.query, 0, hidden},
                                                  {names.key, hidden, hidden},
                                                  {names.value, 2 * hidden, hidden}}
                        : std::vector<TensorPart>{{names.qkv, 0, 3 * hidden}};
  SKEIN_RETURN_IF_ERROR(
      LayerLinear(qkv, 3 * hidden, hidden, layer.qkv, layer.qkv_bias, config_.qkv_bias));
  SKEIN_RETURN_IF_ERROR(LayerLinear({{names.attn_out, 0, hidden}}, hidden, hidden, layer.o,
                                    layer.o_bias, config_.o_bias));
  SKEIN_RETURN_IF_ERROR(Norm(names.attn_norm, layer.mlp_norm, layer.mlp_norm_bias));
  const std::vector<TensorPart> gate_up =
      names.up_gate.empty() ? std::vector<TensorPart>{{names.gate, 0, mlp}, {names.up, padded, mlp}}
                            : std::vector<TensorPart>{{names.up_gate, 0, mlp, mlp, 2 * mlp},
                                                      {names.up_gate, padded, mlp, 0, 2 * mlp}};
  SKEIN_RETURN_IF_ERROR(
      LayerLinear(gate_up, 2 * padded, hidden, layer.gate_up, layer.gate_up_bias, false));
  return LayerLinear({{names.down, 0, hidden}}, hidden, mlp, layer.down, layer.down_bias,
                     config_.mlp_bias);
}

Status EncoderLoader::WalkModernBert() {
  const ModernBertNames names = NamesOfModernBert(config_);
  const int32_t hidden = config_.hidden_size;
  const MaskedHead masked = {names.head_dense, names.head_norm, names.decoder,
                             names.decoder + ".bias", config_.encoder.head_activation};
  SKEIN_RETURN_IF_ERROR(WalkWords(names.words, masked));
  for (int32_t i = 0; i < config_.num_base_layers(); ++i) {
    SKEIN_RETURN_IF_ERROR(
        WalkModernBertLayer(NamesOfModernBertLayer(config_, i), weights_.layers[i]));
  }
  SKEIN_RETURN_IF_ERROR(Norm(names.final_norm, weights_.final_norm, weights_.final_norm_bias));
  if (config_.head == Head::kMaskedLanguageModel) return WalkMaskedHead(masked);
  if (config_.head != Head::kClassifier) return Status::Ok();
  weights_.head_activation = config_.encoder.head_activation;
  SKEIN_RETURN_IF_ERROR(loader_.Linear({{names.head_dense, 0, hidden}}, hidden, hidden,
                                       weights_.head_dense, weights_.head_dense_bias,
                                       config_.encoder.head_bias));
  SKEIN_RETURN_IF_ERROR(Norm(names.head_norm, weights_.head_norm, weights_.head_norm_bias));
  return loader_.Linear({{names.head_out, 0, config_.num_classes}}, config_.num_classes, hidden,
                        weights_.head_out, weights_.head_out_bias);
}

Status EncoderLoader::WalkModernBertLayer(const ModernBertLayerNames& names, LayerWeights& layer) {
  const int32_t hidden = config_.hidden_size, mlp = config_.intermediate_size;
  const int32_t padded = config_.intermediate_padded();
  SKEIN_RETURN_IF_ERROR(Norm(names.attn_norm, layer.attn_norm, layer.attn_norm_bias));
  SKEIN_RETURN_IF_ERROR(LayerLinear({{names.qkv, 0, 3 * hidden}}, 3 * hidden, hidden, layer.qkv,
                                    layer.qkv_bias, config_.qkv_bias));
  SKEIN_RETURN_IF_ERROR(LayerLinear({{names.attn_out, 0, hidden}}, hidden, hidden, layer.o,
                                    layer.o_bias, config_.o_bias));
  SKEIN_RETURN_IF_ERROR(Norm(names.mlp_norm, layer.mlp_norm, layer.mlp_norm_bias));
  SKEIN_RETURN_IF_ERROR(
      LayerLinear({{names.gate_up, 0, mlp, 0, 2 * mlp}, {names.gate_up, padded, mlp, mlp, 2 * mlp}},
                  2 * padded, hidden, layer.gate_up, layer.gate_up_bias, config_.mlp_bias));
  return LayerLinear({{names.down, 0, hidden}}, hidden, mlp, layer.down, layer.down_bias,
                     config_.mlp_bias);
}

Status EncoderLoader::LayerLinear(const std::vector<TensorPart>& parts, int32_t n, int32_t k,
                                  PackedWeight& weight, std::vector<float>& bias, bool has_bias) {
  SKEIN_RETURN_IF_ERROR(loader_.Matrix(parts, n, k, weight));
  return has_bias ? loader_.Bias(parts, n, bias) : Status::Ok();
}

// A norm without biases gets zeros, which change no bit except the sign of a zero.
Status EncoderLoader::Norm(const std::string& name, std::vector<float>& weight,
                           std::vector<float>& bias) {
  SKEIN_RETURN_IF_ERROR(loader_.Vector(name + ".weight", config_.hidden_size, weight));
  if (config_.encoder.norm_bias) return loader_.Vector(name + ".bias", config_.hidden_size, bias);
  bias.assign(config_.hidden_size, 0.0f);
  return Status::Ok();
}

}  // namespace skein
