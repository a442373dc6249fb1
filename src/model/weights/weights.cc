#include "model/weights/weights.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"
#include "model/weights/encoder_names.h"
#include "model/weights/row_source.h"
#include "model/weights/widen.h"

namespace skein {
namespace {

int32_t CeilDiv(int32_t a, int32_t b) { return (a + b - 1) / b; }

// Finds the tensors of one model by name and shape, and reads them into ModelWeights.
class WeightsLoader {
 public:
  WeightsLoader(const ModelFiles& files, const ModelConfig& config, WeightTypes types,
                ThreadTeam& team, const LoadProgress& progress)
      : files_(files), config_(config), team_(team), progress_(progress) {
    weights_.config = config;
    weights_.dtype = types.compute;
    weights_.matrix_dtype = types.matrices;
    keep_blocks_ = types.keep_blocks;
  }

  Result<ModelWeights> Load() {
    // The first walk only checks that every tensor is there, so that a faulty model is refused at
    // once.
    SKEIN_RETURN_IF_ERROR(Walk());
    WarnOfStrangers();
    checking_ = false;
    SKEIN_RETURN_IF_ERROR(Walk());
    return std::move(weights_);
  }

 private:
  // A part of a matrix: rows of a tensor from tensor_row on; with tensor_rows 0, all of them.
  struct Part {
    std::string name;
    int32_t row_begin = 0;
    int32_t num_rows = 0;
    int32_t tensor_row = 0;
    int32_t tensor_rows = 0;
    int32_t RowsOfTensor() const { return tensor_rows > 0 ? tensor_rows : num_rows; }
  };

  Status Walk() {
    // Files of a model without a head may omit the prefix of tensor names.
    root_ = files_.Has("embed_tokens.weight") && !files_.Has("model.embed_tokens.weight")
                ? ""
                : "model.";
    weights_.layers.clear();
    weights_.layers.resize(config_.num_layers);
    if (config_.is_encoder()) return config_.is_bert_family() ? WalkEncoder() : WalkModernBert();
    for (int32_t i = 0; i < config_.num_layers; ++i) {
      const std::string prefix = root_ + "layers." + std::to_string(i) + ".";
      SKEIN_RETURN_IF_ERROR(WalkAttention(prefix, weights_.layers[i]));
      SKEIN_RETURN_IF_ERROR(Vector(prefix + "post_attention_layernorm.weight", config_.hidden_size,
                                   weights_.layers[i].mlp_norm));
      SKEIN_RETURN_IF_ERROR(config_.HasExperts(i) ? WalkExperts(prefix, weights_.layers[i])
                                                  : WalkMlp(prefix, weights_.layers[i]));
    }
    SKEIN_RETURN_IF_ERROR(Vector(root_ + "norm.weight", config_.hidden_size, weights_.final_norm));
    return WalkVocabulary();
  }

  Status WalkAttention(const std::string& prefix, LayerWeights& layer) {
    const std::string attn = prefix + "self_attn.";
    const int32_t hidden = config_.hidden_size;
    const int32_t q_rows = config_.num_heads * config_.head_dim;
    const int32_t kv_rows = config_.num_kv_heads * config_.head_dim;
    SKEIN_RETURN_IF_ERROR(Vector(prefix + "input_layernorm.weight", hidden, layer.attn_norm));
    const std::vector<Part> parts = {{attn + "q_proj", 0, q_rows},
                                     {attn + "k_proj", q_rows, kv_rows},
                                     {attn + "v_proj", q_rows + kv_rows, kv_rows}};
    SKEIN_RETURN_IF_ERROR(Matrix(parts, q_rows + 2 * kv_rows, hidden, layer.qkv));
    if (config_.qkv_bias) {
      SKEIN_RETURN_IF_ERROR(Bias(parts, q_rows + 2 * kv_rows, layer.qkv_bias));
    }
    if (config_.qk_norm) {
      SKEIN_RETURN_IF_ERROR(Vector(attn + "q_norm.weight", config_.head_dim, layer.q_norm));
      SKEIN_RETURN_IF_ERROR(Vector(attn + "k_norm.weight", config_.head_dim, layer.k_norm));
    }
    const std::vector<Part> o = {{attn + "o_proj", 0, hidden}};
    SKEIN_RETURN_IF_ERROR(Matrix(o, hidden, q_rows, layer.o));
    return config_.o_bias ? Bias(o, hidden, layer.o_bias) : Status::Ok();
  }

  Status WalkMlp(const std::string& prefix, LayerWeights& layer) {
    const std::string mlp = prefix + "mlp.";
    const int32_t hidden = config_.hidden_size;
    const int32_t intermediate = config_.intermediate_size;
    const int32_t padded = weights_.config.intermediate_padded();
    const std::vector<Part> gate_up = {{mlp + "gate_proj", 0, intermediate},
                                       {mlp + "up_proj", padded, intermediate}};
    SKEIN_RETURN_IF_ERROR(Matrix(gate_up, 2 * padded, hidden, layer.gate_up));
    const std::vector<Part> down = {{mlp + "down_proj", 0, hidden}};
    SKEIN_RETURN_IF_ERROR(Matrix(down, hidden, intermediate, layer.down));
    if (!config_.mlp_bias) return Status::Ok();
    SKEIN_RETURN_IF_ERROR(Bias(gate_up, 2 * padded, layer.gate_up_bias));
    return Bias(down, hidden, layer.down_bias);
  }

  Status WalkExperts(const std::string& prefix, LayerWeights& layer) {
    const int32_t hidden = config_.hidden_size, size = config_.expert_size;
    const int32_t padded = config_.expert_padded();
    SKEIN_RETURN_IF_ERROR(Matrix({{prefix + "mlp.gate", 0, config_.num_experts}},
                                 config_.num_experts, hidden, layer.router));
    layer.experts.resize(config_.num_experts);
    for (int32_t i = 0; i < config_.num_experts; ++i) {
      const std::string expert = prefix + "mlp.experts." + std::to_string(i) + ".";
      ExpertWeights& weights = layer.experts[i];
      SKEIN_RETURN_IF_ERROR(
          Matrix({{expert + "gate_proj", 0, size}, {expert + "up_proj", padded, size}}, 2 * padded,
                 hidden, weights.gate_up));
      SKEIN_RETURN_IF_ERROR(
          Matrix({{expert + "down_proj", 0, hidden}}, hidden, size, weights.down));
    }
    return Status::Ok();
  }

  Status WalkVocabulary() {
    const int32_t vocab = config_.vocab_size;
    const int32_t hidden = config_.hidden_size;
    const std::string embedding = root_ + "embed_tokens";
    if (config_.head != Head::kLanguageModel) {
      SKEIN_RETURN_IF_ERROR(Table(embedding + ".weight"));
      return config_.head == Head::kClassifier ? WalkClassifier() : Status::Ok();
    }
    if (config_.tie_embeddings) {
      // Some writers store the tied matrix twice.
      known_.insert("lm_head.weight");
      return Matrix({{embedding, 0, vocab}}, vocab, hidden, weights_.output);
    }
    SKEIN_RETURN_IF_ERROR(Table(embedding + ".weight"));
    return Matrix({{"lm_head", 0, vocab}}, vocab, hidden, weights_.output);
  }

  Status WalkEncoder() {
    const EncoderNames names = NamesOfEncoder(config_);
    const int32_t hidden = config_.hidden_size;
    SKEIN_RETURN_IF_ERROR(Table(names.words + ".weight"));
    SKEIN_RETURN_IF_ERROR(FloatTable(names.positions, config_.encoder.first_position,
                                     config_.max_position, weights_.positions));
    if (!names.segments.empty()) {
      SKEIN_RETURN_IF_ERROR(
          FloatTable(names.segments, 0, config_.encoder.num_segments, weights_.segments));
    }
    std::string norm = names.norm;  // the norm of the layer's input
    for (int32_t i = 0; i < config_.num_layers; ++i) {
      LayerWeights& layer = weights_.layers[i];
      const EncoderLayerNames layer_names = NamesOfEncoderLayer(config_, i);
      SKEIN_RETURN_IF_ERROR(Norm(norm, layer.attn_norm, layer.attn_norm_bias));
      SKEIN_RETURN_IF_ERROR(WalkEncoderLayer(layer_names, layer));
      norm = layer_names.mlp_norm;
    }
    SKEIN_RETURN_IF_ERROR(Norm(norm, weights_.final_norm, weights_.final_norm_bias));
    if (config_.head != Head::kClassifier) return Status::Ok();
    weights_.head_activation = names.head_activation;
    SKEIN_RETURN_IF_ERROR(Linear({{names.head_dense, 0, hidden}}, hidden, hidden,
                                 weights_.head_dense, weights_.head_dense_bias));
    return Linear({{names.head_out, 0, config_.num_classes}}, config_.num_classes, hidden,
                  weights_.head_out, weights_.head_out_bias);
  }

  Status WalkEncoderLayer(const EncoderLayerNames& names, LayerWeights& layer) {
    const int32_t hidden = config_.hidden_size;
    const int32_t mlp = config_.intermediate_size;
    SKEIN_RETURN_IF_ERROR(Linear(
        {{names.query, 0, hidden}, {names.key, hidden, hidden}, {names.value, 2 * hidden, hidden}},
        3 * hidden, hidden, layer.qkv, layer.qkv_bias));
    SKEIN_RETURN_IF_ERROR(
        Linear({{names.attn_out, 0, hidden}}, hidden, hidden, layer.o, layer.o_bias));
    SKEIN_RETURN_IF_ERROR(Norm(names.attn_norm, layer.mlp_norm, layer.mlp_norm_bias));
    SKEIN_RETURN_IF_ERROR(Linear({{names.up, 0, mlp}}, weights_.config.intermediate_padded(),
                                 hidden, layer.gate_up, layer.gate_up_bias));
    return Linear({{names.down, 0, hidden}}, hidden, mlp, layer.down, layer.down_bias);
  }

  Status WalkModernBert() {
    const ModernBertNames names = NamesOfModernBert(config_);
    const int32_t hidden = config_.hidden_size;
    SKEIN_RETURN_IF_ERROR(Table(names.words + ".weight"));
    for (int32_t i = 0; i < config_.num_layers; ++i) {
      SKEIN_RETURN_IF_ERROR(
          WalkModernBertLayer(NamesOfModernBertLayer(config_, i), weights_.layers[i]));
    }
    SKEIN_RETURN_IF_ERROR(Norm(names.final_norm, weights_.final_norm, weights_.final_norm_bias));
    if (config_.head != Head::kClassifier) return Status::Ok();
    weights_.head_activation = config_.encoder.head_activation;
    SKEIN_RETURN_IF_ERROR(Linear({{names.head_dense, 0, hidden}}, hidden, hidden,
                                 weights_.head_dense, weights_.head_dense_bias,
                                 config_.encoder.head_bias));
    SKEIN_RETURN_IF_ERROR(Norm(names.head_norm, weights_.head_norm, weights_.head_norm_bias));
    return Linear({{names.head_out, 0, config_.num_classes}}, config_.num_classes, hidden,
                  weights_.head_out, weights_.head_out_bias);
  }

  Status WalkModernBertLayer(const ModernBertLayerNames& names, LayerWeights& layer) {
    const int32_t hidden = config_.hidden_size, mlp = config_.intermediate_size;
    const int32_t padded = config_.intermediate_padded();
    SKEIN_RETURN_IF_ERROR(Norm(names.attn_norm, layer.attn_norm, layer.attn_norm_bias));
    SKEIN_RETURN_IF_ERROR(Linear({{names.qkv, 0, 3 * hidden}}, 3 * hidden, hidden, layer.qkv,
                                 layer.qkv_bias, config_.qkv_bias));
    SKEIN_RETURN_IF_ERROR(Linear({{names.attn_out, 0, hidden}}, hidden, hidden, layer.o,
                                 layer.o_bias, config_.o_bias));
    SKEIN_RETURN_IF_ERROR(Norm(names.mlp_norm, layer.mlp_norm, layer.mlp_norm_bias));
    SKEIN_RETURN_IF_ERROR(
        Linear({{names.gate_up, 0, mlp, 0, 2 * mlp}, {names.gate_up, padded, mlp, mlp, 2 * mlp}},
               2 * padded, hidden, layer.gate_up, layer.gate_up_bias, config_.mlp_bias));
    return Linear({{names.down, 0, hidden}}, hidden, mlp, layer.down, layer.down_bias,
                  config_.mlp_bias);
  }

  // A norm without biases has zeros, which change no bit but the sign of a zero.
  Status Norm(const std::string& name, std::vector<float>& weight, std::vector<float>& bias) {
    SKEIN_RETURN_IF_ERROR(Vector(name + ".weight", config_.hidden_size, weight));
    if (config_.encoder.norm_bias) return Vector(name + ".bias", config_.hidden_size, bias);
    bias.assign(config_.hidden_size, 0.0f);
    return Status::Ok();
  }

  Status Linear(const std::vector<Part>& parts, int32_t n, int32_t k, PackedWeight& weight,
                std::vector<float>& bias, bool has_bias = true) {
    SKEIN_RETURN_IF_ERROR(MatrixAs(weights_.dtype, parts, n, k, weight));
    return has_bias ? Bias(parts, n, bias) : Status::Ok();
  }

  // Reads rows [begin, begin + count) of a table of begin + count rows.
  Status FloatTable(const std::string& name, int32_t begin, int32_t count,
                    std::vector<float>& out) {
    const size_t hidden = config_.hidden_size;
    SKEIN_ASSIGN_OR_RETURN(const TensorView view,
                           Find(name + ".weight", {begin + count, config_.hidden_size}));
    if (checking_) {
      bytes_total_ += view.bytes;
      return Status::Ok();
    }
    out.resize(count * hidden);
    view.ReadRows(begin, count, out.data());
    Report(view.bytes);
    return Status::Ok();
  }

  Status WalkClassifier() {
    const int32_t hidden = config_.hidden_size;
    if (config_.reward_mlp) {
      weights_.head_activation = Activation::kRelu;
      SKEIN_RETURN_IF_ERROR(Linear({{"score.0", 0, hidden}}, hidden, hidden, weights_.head_dense,
                                   weights_.head_dense_bias));
      return Linear({{"score.2", 0, config_.num_classes}}, config_.num_classes, hidden,
                    weights_.head_out, weights_.head_out_bias);
    }
    const std::vector<Part> score = {{"score", 0, config_.num_classes}};
    SKEIN_RETURN_IF_ERROR(
        MatrixAs(weights_.dtype, score, config_.num_classes, hidden, weights_.head_out));
    return files_.Has("score.bias") ? Bias(score, config_.num_classes, weights_.head_out_bias)
                                    : Status::Ok();
  }

  Result<TensorView> Find(const std::string& name, const std::vector<int64_t>& shape) {
    known_.insert(name);
    if (!files_.Has(name)) {
      return Status(StatusCode::kInvalidArgument, "the model lacks the tensor " + name +
                                                      ", expected of shape " + ShapeString(shape));
    }
    return files_.Find(name, shape);
  }

  Status Vector(const std::string& name, int32_t size, std::vector<float>& out) {
    SKEIN_ASSIGN_OR_RETURN(const TensorView view, Find(name, {size}));
    if (checking_) {
      bytes_total_ += view.bytes;
      return Status::Ok();
    }
    out.resize(size);
    view.ReadRows(0, 1, out.data());
    Report(view.bytes);
    return Status::Ok();
  }

  Status Bias(const std::vector<Part>& parts, int32_t size, std::vector<float>& out) {
    std::vector<float> all(size, 0.0f);
    for (const Part& part : parts) {
      std::vector<float> one;
      SKEIN_RETURN_IF_ERROR(Vector(part.name + ".bias", part.RowsOfTensor(), one));
      if (checking_) continue;
      std::copy_n(one.begin() + part.tensor_row, part.num_rows, all.begin() + part.row_begin);
    }
    if (!checking_) out = std::move(all);
    return Status::Ok();
  }

  // A matrix of a layer, or the output's.
  Status Matrix(const std::vector<Part>& parts, int32_t n, int32_t k, PackedWeight& out) {
    SKEIN_ASSIGN_OR_RETURN(const std::vector<RowSource> sources, FindRows(parts, k));
    if (keep_blocks_) {
      auto formats = FormatsInFile(sources, n, k);
      if (!formats) return MatrixAs(weights_.dtype, parts, n, k, out);
      weights_.matrix_dtype = DType::kBlocks;
      return Fill(
          sources, [&] { return PackedWeight(n, k, *std::move(formats)); }, out);
    }
    if (weights_.matrix_dtype != DType::kBlocks) {
      return MatrixAs(weights_.matrix_dtype, parts, n, k, out);
    }
    if (k % kBlockTerms != 0) return MatrixAs(weights_.dtype, parts, n, k, out);
    std::vector<BlockFormat> formats(CeilDiv(n, kPanelCols), BlockFormat::kQ4_0);
    return Fill(
        sources, [&] { return PackedWeight(n, k, std::move(formats)); }, out);
  }

  Status MatrixAs(DType dtype, const std::vector<Part>& parts, int32_t n, int32_t k,
                  PackedWeight& out) {
    SKEIN_ASSIGN_OR_RETURN(const std::vector<RowSource> sources, FindRows(parts, k));
    return Fill(
        sources, [&] { return PackedWeight(n, k, dtype); }, out);
  }

  Result<std::vector<RowSource>> FindRows(const std::vector<Part>& parts, int32_t k) {
    std::vector<RowSource> sources;
    for (const Part& part : parts) {
      RowSource source = {{}, std::nullopt, part.row_begin, part.num_rows, part.tensor_row};
      const auto names =
          QuantizedMatrix::TensorNames(files_, part.name, config_.quantization.method);
      known_.insert(names.begin(), names.end());
      if (names.empty()) {
        SKEIN_ASSIGN_OR_RETURN(source.view, Find(part.name + ".weight", {part.RowsOfTensor(), k}));
      } else {
        SKEIN_ASSIGN_OR_RETURN(
            source.quantized,
            QuantizedMatrix::Open(files_, part.name, part.RowsOfTensor(), k, config_.quantization));
      }
      sources.push_back(std::move(source));
    }
    return sources;
  }

  // The format of each panel. The file must have all tensors in blocks that the kernels multiply,
  // and no panel may have rows of two tensors.
  static std::optional<std::vector<BlockFormat>> FormatsInFile(
      const std::vector<RowSource>& sources, int32_t n, int32_t k) {
    std::vector<std::optional<BlockFormat>> found(CeilDiv(n, kPanelCols));
    for (const RowSource& source : sources) {
      if (source.view.blocks == nullptr || source.row_begin % kPanelCols != 0) return std::nullopt;
      const std::optional<BlockFormat> format = source.view.blocks->format;
      if (!format || k % TraitsOf(*format).file_elements != 0) return std::nullopt;
      const int32_t first = source.row_begin / kPanelCols;
      for (int32_t i = 0; i < CeilDiv(source.num_rows, kPanelCols); ++i) {
        if (found[first + i]) return std::nullopt;
        found[first + i] = format;
      }
    }
    std::vector<BlockFormat> formats;
    for (const auto& format : found) formats.push_back(format.value_or(BlockFormat::kQ4_0));
    return formats;
  }

  // Makes the matrix and packs the sources into it.
  template <typename Make>
  Status Fill(const std::vector<RowSource>& sources, const Make& make, PackedWeight& out) {
    if (checking_) {
      for (const RowSource& source : sources) bytes_total_ += source.bytes();
      return Status::Ok();
    }
    out = make();
    Pack(sources, out);
    for (const RowSource& source : sources) {
      ModelFiles::ReleasePages(source.view);
      Report(source.bytes());
    }
    return Status::Ok();
  }

  // A ticket fills whole panels, from any number of tensors: no two threads share a panel.
  void Pack(const std::vector<RowSource>& sources, PackedWeight& out) {
    constexpr int32_t kRowsPerTicket = 4 * kPanelCols;
    const auto pack_rows = [&](int ticket, int) {
      const int32_t begin = ticket * kRowsPerTicket;
      const int32_t end = std::min(begin + kRowsPerTicket, out.n());
      for (const RowSource& source : sources) {
        const int32_t first = std::max(begin, source.row_begin);
        const int32_t last = std::min(end, source.row_begin + source.num_rows);
        if (first < last) source.Pack(first, last - first, keep_blocks_, &out);
      }
    };
    team_.Run(0, CeilDiv(out.n(), kRowsPerTicket), pack_rows);
  }

  // Reads the embedding table, row by row, in the compute type.
  Status Table(const std::string& name) {
    const size_t hidden = config_.hidden_size;
    SKEIN_ASSIGN_OR_RETURN(const TensorView view,
                           Find(name, {config_.vocab_size, config_.hidden_size}));
    if (checking_) {
      bytes_total_ += view.bytes;
      return Status::Ok();
    }
    if (keep_blocks_ && view.blocks != nullptr) {
      weights_.embedding = AlignedBuffer(view.bytes);
      weights_.embedding_blocks = view.blocks;
      std::memcpy(weights_.embedding.data(), view.data, view.bytes);
      ModelFiles::ReleasePages(view);
      Report(view.bytes);
      return Status::Ok();
    }
    weights_.embedding = AlignedBuffer(config_.vocab_size * hidden * SizeOf(weights_.dtype));
    const auto copy_row = [&](int row, int) {
      const std::byte* from = view.Row(row);
      std::byte* to = weights_.embedding.data() + row * hidden * SizeOf(weights_.dtype);
      if (view.dtype == weights_.dtype) {
        std::memcpy(to, from, hidden * SizeOf(view.dtype));
        return;
      }
      std::vector<float> wide(hidden);
      view.ReadRows(row, 1, wide.data());
      if (weights_.dtype == DType::kF32) {
        std::memcpy(to, wide.data(), hidden * sizeof(float));
        return;
      }
      for (size_t i = 0; i < hidden; ++i) {
        const Bf16 rounded = ToBf16(wide[i]);
        std::memcpy(to + 2 * i, &rounded, 2);
      }
    };
    team_.Run(0, config_.vocab_size, copy_row);
    ModelFiles::ReleasePages(view);
    Report(view.bytes);
    return Status::Ok();
  }

  void WarnOfStrangers() const {
    for (const std::string& name : files_.Names()) {
      // Old checkpoints store the rotation's frequencies, which follow from the config.
      if (known_.contains(name) || name.ends_with(".rotary_emb.inv_freq")) continue;
      if (IsUnusedByEncoder(config_, name)) continue;
      spdlog::warn("tensor {} is not part of {}; ignored", name, config_.ArchitectureName());
    }
  }

  void Report(size_t bytes) {
    bytes_done_ += static_cast<int64_t>(bytes);
    if (progress_) progress_(bytes_done_, bytes_total_);
  }

  const ModelFiles& files_;
  const ModelConfig& config_;
  ThreadTeam& team_;
  const LoadProgress& progress_;
  std::string root_;
  bool keep_blocks_ = false;
  bool checking_ = true;
  std::set<std::string> known_;
  int64_t bytes_done_ = 0;
  int64_t bytes_total_ = 0;
  ModelWeights weights_;
};

}  // namespace

int32_t ModelWeights::dense_width() const {
  int32_t widest = 0;
  for (const DenseWeights& dense : embedding_dense) widest = std::max(widest, dense.weight.n());
  return widest;
}

int32_t ModelWeights::embedding_size() const {
  return embedding_dense.empty() ? config.hidden_size : embedding_dense.back().weight.n();
}

void ModelWeights::EmbeddingRow(int32_t token, float* out) const {
  SKEIN_CHECK(token >= 0 && token < config.vocab_size);
  if (embedding.size() == 0) {
    output.UnpackRow(token, out);
    return;
  }
  const size_t hidden = config.hidden_size;
  if (embedding_blocks != nullptr) {
    const int64_t count = config.hidden_size / embedding_blocks->block_elements;
    const std::byte* row = embedding.data() + token * count * embedding_blocks->block_bytes;
    return embedding_blocks->dequantize(row, count, out);
  }
  Widen(embedding.data() + token * hidden * SizeOf(dtype), dtype, hidden, out);
}

size_t ModelWeights::bytes() const {
  const auto vector_bytes = [](const std::vector<float>& v) { return v.size() * sizeof(float); };
  size_t bytes = output.bytes() + embedding.size() + head_dense.bytes() + head_out.bytes();
  for (const std::vector<float>* v :
       {&final_norm, &final_norm_bias, &positions, &segments, &head_dense_bias, &head_norm,
        &head_norm_bias, &head_out_bias}) {
    bytes += vector_bytes(*v);
  }
  for (const DenseWeights& dense : embedding_dense) {
    bytes += dense.weight.bytes() + vector_bytes(dense.bias);
  }
  for (const LayerWeights& layer : layers) {
    bytes += layer.qkv.bytes() + layer.o.bytes() + layer.gate_up.bytes() + layer.down.bytes();
    bytes += layer.router.bytes();
    for (const ExpertWeights& expert : layer.experts) {
      bytes += expert.gate_up.bytes() + expert.down.bytes();
    }
    for (const std::vector<float>* v :
         {&layer.attn_norm, &layer.attn_norm_bias, &layer.mlp_norm_bias, &layer.qkv_bias,
          &layer.q_norm, &layer.k_norm, &layer.o_bias, &layer.mlp_norm, &layer.gate_up_bias,
          &layer.down_bias}) {
      bytes += vector_bytes(*v);
    }
  }
  return bytes;
}

DType ChooseComputeType(ComputeChoice choice, DType file_dtype) {
  if (choice == ComputeChoice::kF32) return DType::kF32;
  if (choice == ComputeChoice::kBf16) return DType::kBf16;
  if (file_dtype == DType::kF16) {
    spdlog::warn("the weights are f16 and are rounded to bf16; --dtype f32 keeps them exact");
  }
  return file_dtype == DType::kF32 ? DType::kF32 : DType::kBf16;
}

Result<WeightTypes> ChooseWeightTypes(Quantization choice, DType compute, const ModelConfig& config,
                                      const ModelFiles& files) {
  WeightTypes types = compute;
  const bool dense_decoder = !config.is_encoder() && config.num_experts == 0;
  if (choice == Quantization::kNone || choice == Quantization::kAuto) {
    types.keep_blocks = choice == Quantization::kAuto && files.is_gguf() && dense_decoder;
    return types;
  }
  const bool int8 = choice == Quantization::kInt8;
  if (!dense_decoder) {
    const char* what = config.is_encoder() ? " is an encoder" : " is a mixture of experts";
    return Status(StatusCode::kUnsupported,
                  std::string("quantization ") + (int8 ? "int8" : "int4") +
                      " is for dense decoders; " + config.ArchitectureName() + what +
                      " and takes none",
                  "quantization");
  }
  types.matrices = int8 ? DType::kInt8 : DType::kBlocks;
  return types;
}

Result<ModelWeights> LoadWeights(const ModelFiles& files, const ModelConfig& config,
                                 WeightTypes types, ThreadTeam& team,
                                 const LoadProgress& progress) {
  SKEIN_CHECK(types.compute == DType::kF32 || types.compute == DType::kBf16);
  SKEIN_CHECK(types.matrices == types.compute || types.matrices == DType::kInt8 ||
              types.matrices == DType::kBlocks);
  return WeightsLoader(files, config, types, team, progress).Load();
}

Result<ModelWeights> LoadWeights(const std::string& model_dir, const ModelConfig& config,
                                 WeightTypes types, ThreadTeam& team,
                                 const LoadProgress& progress) {
  SKEIN_ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::Open(model_dir));
  return LoadWeights(files, config, types, team, progress);
}

}  // namespace skein
