#include "model/weights/compact_head_weights.h"

#include <algorithm>

#include "io/tensor_view.h"
#include "model/weights/row_source.h"

namespace skein {
namespace {

constexpr int64_t kCompactMlpFactor = 4;

// The names of the projections of a pointer head.
constexpr char kPointerSummary[] = "kev.head.q.";
constexpr char kPointerOption[] = "kev.head.k.";

std::string CompactLayerPrefix(int32_t index) {
  return std::string(kCompactHeadPrefix) + "blocks.layers." + std::to_string(index) + ".";
}

class CompactHeadReader {
 public:
  CompactHeadReader(const ModelFiles& files, const ModelConfig& config)
      : files_(files), config_(config) {}

  Result<CompactHeadWeights> Read() {
    CompactHeadWeights head;
    if (config_.decision.is_pointer) {
      SKEIN_RETURN_IF_ERROR(Linear(kPointerSummary, &head.summary));
      SKEIN_RETURN_IF_ERROR(Linear(kPointerOption, &head.option));
      return head;
    }
    const std::string at = kCompactHeadPrefix;
    SKEIN_RETURN_IF_ERROR(Linear(at + "input_proj.", &head.in));
    SKEIN_RETURN_IF_ERROR(ReadTypes(at + "type_embedding.weight", &head.type_embedding));
    SKEIN_RETURN_IF_ERROR(Norm(at + "input_norm.", &head.input_norm));
    head.layers.resize(static_cast<size_t>(config_.decision.compact_layers));
    for (size_t i = 0; i < head.layers.size(); ++i) {
      SKEIN_RETURN_IF_ERROR(
          ReadLayer(CompactLayerPrefix(static_cast<int32_t>(i)), &head.layers[i]));
    }
    SKEIN_RETURN_IF_ERROR(Norm(at + "final_norm.", &head.final_norm));
    SKEIN_RETURN_IF_ERROR(Linear(at + "summary_proj.", &head.summary));
    SKEIN_RETURN_IF_ERROR(Linear(at + "option_proj.", &head.option));
    return head;
  }

 private:
  Status ReadLayer(const std::string& at, CompactHeadLayer* layer) {
    SKEIN_RETURN_IF_ERROR(Norm(at + "norm1.", &layer->attn_norm));
    SKEIN_RETURN_IF_ERROR(Linear(at + "self_attn.in_proj_", &layer->qkv));
    SKEIN_RETURN_IF_ERROR(Linear(at + "self_attn.out_proj.", &layer->o));
    SKEIN_RETURN_IF_ERROR(Norm(at + "norm2.", &layer->mlp_norm));
    SKEIN_RETURN_IF_ERROR(Linear(at + "linear1.", &layer->up));
    return Linear(at + "linear2.", &layer->down);
  }

  // Reads the rows of the type embedding in the order choice, score, noul.
  Status ReadTypes(const std::string& name, std::vector<float>* out) {
    std::vector<float> rows;
    SKEIN_RETURN_IF_ERROR(ReadFloats(files_, name, &rows));
    const auto width = static_cast<size_t>(config_.decision.compact_width);
    for (const int32_t row : config_.decision.type_rows) {
      const auto from = rows.begin() + static_cast<int64_t>(row * width);
      out->insert(out->end(), from, from + static_cast<int64_t>(width));
    }
    return Status::Ok();
  }

  Status Norm(const std::string& prefix, LayerNormWeights* norm) {
    SKEIN_RETURN_IF_ERROR(ReadFloats(files_, prefix + "weight", &norm->weight));
    return ReadFloats(files_, prefix + "bias", &norm->bias);
  }

  Status Linear(const std::string& prefix, BiasedWeight* out) {
    SKEIN_ASSIGN_OR_RETURN(const TensorView view, files_.Find(prefix + "weight"));
    out->weight = PackedWeight(static_cast<int32_t>(view.shape[0]),
                               static_cast<int32_t>(view.shape[1]), DType::kF32);
    const RowSource source = {.view = view, .num_rows = out->weight.n()};
    source.Pack(0, out->weight.n(), false, &out->weight);
    return ReadFloats(files_, prefix + "bias", &out->bias);
  }

  const ModelFiles& files_;
  const ModelConfig& config_;
};

}  // namespace

std::vector<ModelTensor> ListCompactHeadTensors(const ModelConfig& config) {
  const int64_t hidden = config.hidden_size, width = config.decision.compact_width;
  std::vector<ModelTensor> tensors;
  const auto linear = [&](const std::string& prefix, int64_t n, int64_t k, TensorRole role) {
    tensors.push_back({prefix + "weight", {n, k}, role});
    tensors.push_back({prefix + "bias", {n}, TensorRole::kBias});
  };
  const auto norm = [&](const std::string& prefix) {
    tensors.push_back({prefix + "weight", {width}, TensorRole::kNorm});
    tensors.push_back({prefix + "bias", {width}, TensorRole::kBias});
  };
  if (config.decision.is_pointer) {
    linear(kPointerSummary, width, hidden, TensorRole::kInput);
    linear(kPointerOption, width, hidden, TensorRole::kInput);
    return tensors;
  }
  const std::string at = kCompactHeadPrefix;
  linear(at + "input_proj.", width, hidden, TensorRole::kInput);
  tensors.push_back({at + "type_embedding.weight",
                     {config.decision.num_type_rows, width},
                     TensorRole::kEmbedding});
  norm(at + "input_norm.");
  for (int32_t i = 0; i < config.decision.compact_layers; ++i) {
    const std::string layer = CompactLayerPrefix(i);
    norm(layer + "norm1.");
    linear(layer + "self_attn.in_proj_", 3 * width, width, TensorRole::kInput);
    linear(layer + "self_attn.out_proj.", width, width, TensorRole::kOutput);
    norm(layer + "norm2.");
    linear(layer + "linear1.", kCompactMlpFactor * width, width, TensorRole::kInput);
    linear(layer + "linear2.", width, kCompactMlpFactor * width, TensorRole::kOutput);
  }
  norm(at + "final_norm.");
  linear(at + "summary_proj.", width, width, TensorRole::kInput);
  linear(at + "option_proj.", width, width, TensorRole::kInput);
  return tensors;
}

Result<CompactHeadWeights> LoadCompactHead(const ModelFiles& files, const ModelConfig& config) {
  return CompactHeadReader(files, config).Read();
}

size_t CompactHeadWeights::bytes() const {
  const auto floats = [](const std::vector<float>& v) { return v.size() * sizeof(float); };
  const auto of_linear = [&](const BiasedWeight& w) { return w.weight.bytes() + floats(w.bias); };
  const auto of_norm = [&](const LayerNormWeights& n) { return floats(n.weight) + floats(n.bias); };
  size_t bytes = of_linear(in) + of_linear(summary) + of_linear(option) + of_norm(input_norm) +
                 of_norm(final_norm) + floats(type_embedding);
  for (const CompactHeadLayer& layer : layers) {
    bytes += of_norm(layer.attn_norm) + of_norm(layer.mlp_norm) + of_linear(layer.qkv) +
             of_linear(layer.o) + of_linear(layer.up) + of_linear(layer.down);
  }
  return bytes;
}

}  // namespace skein
