#include "model/weights/weights.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/convert.h"
#include "model/weights/decision_weights.h"
#include "model/weights/decoder_loader.h"
#include "model/weights/encoder_loader.h"
#include "model/weights/encoder_names.h"
#include "model/weights/model_weight_files.h"
#include "model/weights/tensor_loader.h"

namespace skein {
namespace {

// Whether a tensor of the files has blocks of 4 to 8 bits.
bool HasBlocks(const ModelFiles& files) {
  if (!files.is_gguf()) return false;
  const std::vector<std::string> names = files.Names();
  return std::ranges::any_of(
      names, [&](const std::string& name) { return files.Info(name).dtype == DType::kBlocks; });
}

// Finds the tensors of one model by name and shape, and reads them into ModelWeights.
class WeightsLoader {
 public:
  WeightsLoader(const ModelFiles& files, const ModelConfig& config, WeightTypes types,
                ThreadTeam& team, const LoadProgress& progress)
      : loader_(files, config.quantization, types, team, progress) {
    weights_.config = config;
    weights_.dtype = types.compute;
    if (types.matrices == DType::kBlocks) weights_.rounded_to = types.block_format;
  }

  Result<ModelWeights> Load() {
    ModelConfig& config = weights_.config;
    if (config.tie_embeddings && config.has_output_matrix() &&
        HasOwnOutputMatrix(loader_.files())) {
      spdlog::warn(
          "'tie_word_embeddings' is true, but lm_head.weight differs from the embedding: both are "
          "used");
      config.tie_embeddings = false;
    }
    // The first walk only checks that every tensor exists, so that a faulty model is refused at
    // once.
    SKEIN_RETURN_IF_ERROR(Walk());
    WarnOfStrangers();
    loader_.StartReading();
    SKEIN_RETURN_IF_ERROR(Walk());
    TellOfWidening();
    weights_.matrix_dtype = loader_.matrix_dtype();
    return std::move(weights_);
  }

 private:
  Status Walk() {
    weights_.layers.clear();
    weights_.layers.resize(weights_.config.num_layers);
    if (weights_.config.is_encoder()) return EncoderLoader(loader_, weights_).Walk();
    return DecoderLoader(loader_, weights_).Walk();
  }

  void TellOfWidening() const {
    const TensorLoader::Widening& widening = loader_.widening();
    if (widening.num_widened == 0) return;
    spdlog::warn("{} of {} quantized matrices are widened to {}: {}", widening.num_widened,
                 widening.num_quantized, NameOf(weights_.dtype),
                 widening.because.empty() ? "their rows share panels of 16" : widening.because);
  }

  void WarnOfStrangers() const {
    const ModelConfig& config = weights_.config;
    for (const std::string& name : loader_.files().Names()) {
      const bool unused =
          config.is_encoder() ? IsUnusedByEncoder(config, name) : IsUnusedByDecoder(config, name);
      if (unused || loader_.IsKnown(name)) continue;
      spdlog::warn("tensor {} is not part of {}; ignored", name, config.ArchitectureName());
    }
  }

  TensorLoader loader_;
  ModelWeights weights_;
};

// Calls visit for each matrix of the layers, and for the output matrix, until a call fails.
// Weights: ModelWeights, const or not.
template <typename Weights, typename Visit>
Status ForEachMatrix(Weights& weights, const Visit& visit) {
  SKEIN_RETURN_IF_ERROR(visit(weights.output));
  for (auto& layer : weights.layers) {
    for (auto* matrix :
         {&layer.qkv, &layer.o, &layer.gate_up, &layer.down, &layer.router, &layer.attn_gate,
          &layer.linear.in, &layer.distance_keys, &layer.distance_queries, &layer.shared_gate}) {
      SKEIN_RETURN_IF_ERROR(visit(*matrix));
    }
    for (auto& expert : layer.experts) {
      SKEIN_RETURN_IF_ERROR(visit(expert.gate_up));
      SKEIN_RETURN_IF_ERROR(visit(expert.down));
    }
  }
  return Status::Ok();
}

}  // namespace

int32_t ModelWeights::dense_width() const {
  int32_t widest = 0;
  for (const DenseWeights& dense : embedding_dense) widest = std::max(widest, dense.weight.n());
  return widest;
}

int32_t ModelWeights::embedding_size() const {
  if (config.head == Head::kMaskedLanguageModel) return config.vocab_size;
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
  size_t bytes = embedding.size() + head_dense.bytes() + head_out.bytes() +
                 decision.action_in.bytes() + compact_head.bytes() + joint_head.bytes();
  for (const std::vector<float>* v :
       {&final_norm, &final_norm_bias, &output_bias, &positions, &segments, &head_dense_bias,
        &head_norm, &head_norm_bias, &head_out_bias, &decision.input_norm,
        &decision.input_norm_bias, &decision.type_embedding, &decision.action_in_bias,
        &decision.action_features, &decision.action_out, &decision.action_out_bias,
        &distance_bias}) {
    bytes += vector_bytes(*v);
  }
  for (const DenseWeights& dense : embedding_dense) {
    bytes += dense.weight.bytes() + vector_bytes(dense.bias);
  }
  for (const LayerWeights& layer : layers) {
    for (const std::vector<float>* v :
         {&layer.attn_norm, &layer.attn_norm_bias, &layer.mlp_norm_bias, &layer.qkv_bias,
          &layer.q_norm, &layer.k_norm, &layer.o_bias, &layer.mlp_norm, &layer.gate_up_bias,
          &layer.down_bias, &layer.post_attn_norm, &layer.post_mlp_norm, &layer.linear.conv,
          &layer.linear.a_log, &layer.linear.dt_bias, &layer.linear.norm, &layer.sinks,
          &layer.router_bias}) {
      bytes += vector_bytes(*v);
    }
    for (const ExpertWeights& expert : layer.experts) {
      bytes += vector_bytes(expert.gate_up_bias) + vector_bytes(expert.down_bias);
    }
  }
  (void)ForEachMatrix(*this, [&](const PackedWeight& matrix) {
    bytes += matrix.bytes();
    return Status::Ok();
  });
  return bytes;
}

ModelWeights::MatrixBytes ModelWeights::matrix_bytes() const {
  MatrixBytes bytes;
  (void)ForEachMatrix(*this, [&](const PackedWeight& matrix) {
    bytes.all += static_cast<int64_t>(matrix.bytes());
    bytes.largest = std::max(bytes.largest, static_cast<int64_t>(matrix.bytes()));
    return Status::Ok();
  });
  return bytes;
}

Status ModelWeights::Interleave(const std::vector<NumaNode>& nodes) {
  return ForEachMatrix(*this, [&](PackedWeight& matrix) { return matrix.Interleave(nodes); });
}

Status ModelWeights::CopyToNodes(const std::vector<NumaNode>& nodes) {
  return ForEachMatrix(*this, [&](PackedWeight& matrix) { return matrix.CopyToNodes(nodes); });
}

DType ChooseComputeType(ComputeChoice choice, DType file_dtype) {
  if (choice == ComputeChoice::kF32) return DType::kF32;
  if (choice == ComputeChoice::kBf16) return DType::kBf16;
  if (file_dtype == DType::kF16) {
    spdlog::warn("the weights are f16 and are rounded to bf16; --dtype f32 keeps them exact");
  }
  return file_dtype == DType::kF32 ? DType::kF32 : DType::kBf16;
}

DType ChooseKvType(KvCacheType choice, DType compute) {
  return choice == KvCacheType::kInt8 ? DType::kInt8 : compute;
}

WeightTypes ChooseWeightTypes(Quantization choice, DType compute, const ModelConfig& config,
                              const ModelFiles& files) {
  WeightTypes types = compute;
  if (choice == Quantization::kNone || choice == Quantization::kAuto) {
    const bool is_quantized = config.quantization.method != QuantizationMethod::kNone;
    types.keep_blocks = choice == Quantization::kAuto && (HasBlocks(files) || is_quantized);
    return types;
  }
  types.matrices = choice == Quantization::kInt8 ? DType::kInt8 : DType::kBlocks;
  if (choice == Quantization::kQ8_0) types.block_format = BlockFormat::kQ8_0;
  return types;
}

Result<ModelWeights> LoadWeights(const ModelFiles& files, const ModelConfig& config,
                                 WeightTypes types, ThreadTeam& team,
                                 const LoadProgress& progress) {
  SKEIN_CHECK(types.compute == DType::kF32 || types.compute == DType::kBf16);
  SKEIN_CHECK(types.matrices == types.compute || types.matrices == DType::kInt8 ||
              types.matrices == DType::kBlocks);
  if (config.head != Head::kDecision) {
    return WeightsLoader(files, config, types, team, progress).Load();
  }
  SKEIN_RETURN_IF_ERROR(CheckDecisionTensors(files, config));
  SKEIN_ASSIGN_OR_RETURN(ModelWeights weights,
                         WeightsLoader(files, config, types, team, progress).Load());
  SKEIN_RETURN_IF_ERROR(LoadDecisionHead(files, &weights));
  return weights;
}

Result<ModelWeights> LoadWeights(const std::string& model_dir, const ModelConfig& config,
                                 WeightTypes types, ThreadTeam& team,
                                 const LoadProgress& progress) {
  SKEIN_ASSIGN_OR_RETURN(const ModelFiles files, OpenModelFiles(model_dir));
  return LoadWeights(files, config, types, team, progress);
}

Status LoadDenseModules(const std::vector<DenseModule>& modules, ModelWeights* weights) {
  for (const DenseModule& module : modules) {
    SKEIN_CHECK(module.in_features == weights->embedding_size());
    SKEIN_ASSIGN_OR_RETURN(DenseWeights dense, LoadDenseWeights(module, weights->dtype));
    weights->embedding_dense.push_back(std::move(dense));
  }
  return Status::Ok();
}

}  // namespace skein
