#include "model/weights/joint_head_weights.h"

#include <algorithm>
#include <cmath>

#include "io/tensor_view.h"
#include "model/weights/row_source.h"

namespace skein {
namespace {

constexpr int32_t kQkvParts = 3, kScorerParts = 4;
// The rows of the type embedding in the files: noul, choice, score.
constexpr int32_t kFileTypes[kTypeEmbeddings] = {1, 2, 0};

std::string JointName(const std::string& name) { return kJointHeadPrefix + name; }
std::string OptionLayerName(int32_t i) {
  return JointName("evidence_layers." + std::to_string(i) + ".");
}
std::string QuestionLayerName(int32_t i) { return JointName("layers." + std::to_string(i) + "."); }

class JointHeadReader {
 public:
  JointHeadReader(const ModelFiles& files, const JointHeadFields& fields)
      : files_(files), fields_(fields), width_(fields.width) {}

  Result<JointHeadWeights> Read() {
    SKEIN_RETURN_IF_ERROR(ReadInputs());
    head_.option_layers.resize(static_cast<size_t>(fields_.option_layers));
    for (int32_t i = 0; i < fields_.option_layers; ++i) {
      SKEIN_RETURN_IF_ERROR(
          ReadOptionLayer(OptionLayerName(i), &head_.option_layers[static_cast<size_t>(i)]));
    }
    head_.question_layers.resize(static_cast<size_t>(fields_.question_layers));
    for (int32_t i = 0; i < fields_.question_layers; ++i) {
      SKEIN_RETURN_IF_ERROR(
          ReadQuestionLayer(QuestionLayerName(i), &head_.question_layers[static_cast<size_t>(i)]));
    }
    SKEIN_RETURN_IF_ERROR(ReadOutputs());
    return std::move(head_);
  }

 private:
  Status ReadInputs() {
    SKEIN_RETURN_IF_ERROR(Norm(JointName("hidden_norm."), &head_.hidden_norm));
    for (const auto& [name, out] :
         {std::pair("memory", &head_.memory), std::pair("question", &head_.question),
          std::pair("option_question", &head_.option_question), std::pair("global", &head_.global),
          std::pair("option_context", &head_.context),
          std::pair("option_lexical", &head_.lexical)}) {
      SKEIN_ASSIGN_OR_RETURN(const TensorView view,
                             files_.Find(JointName(std::string(name) + "_projection.weight")));
      *out = Packed(view, 0, width_);
    }
    std::vector<float> types;
    SKEIN_RETURN_IF_ERROR(ReadFloats(files_, JointName("type_embedding.weight"), &types));
    for (const int32_t type : kFileTypes) {
      const auto from = types.begin() + int64_t{type} * width_;
      head_.type_embedding.insert(head_.type_embedding.end(), from, from + width_);
    }
    return Norm(JointName("option_summary_norm."), &head_.summary_norm);
  }

  Status ReadOptionLayer(const std::string& at, JointOptionLayer* layer) {
    SKEIN_RETURN_IF_ERROR(Norm(at + "memory_norm.", &layer->memory_norm));
    SKEIN_RETURN_IF_ERROR(Attention(at + "query_norm.", at + "attention.", &layer->attention));
    SKEIN_RETURN_IF_ERROR(Norm(at + "feedforward_norm.", &layer->mlp.norm));
    SKEIN_RETURN_IF_ERROR(Linear(at + "feedforward.0.", &layer->mlp.up));
    return Linear(at + "feedforward.3.", &layer->mlp.down);
  }

  Status ReadQuestionLayer(const std::string& at, JointQuestionLayer* layer) {
    SKEIN_RETURN_IF_ERROR(Norm(at + "norm1.", &layer->self_norm));
    SKEIN_RETURN_IF_ERROR(Rows(at + "self_attn.in_proj_", 0, kQkvParts * width_, &layer->qkv));
    SKEIN_RETURN_IF_ERROR(Linear(at + "self_attn.out_proj.", &layer->self_o));
    SKEIN_RETURN_IF_ERROR(Attention(at + "norm2.", at + "multihead_attn.", &layer->attention));
    SKEIN_RETURN_IF_ERROR(Norm(at + "norm3.", &layer->mlp.norm));
    SKEIN_RETURN_IF_ERROR(Linear(at + "linear1.", &layer->mlp.up));
    return Linear(at + "linear2.", &layer->mlp.down);
  }

  Status ReadOutputs() {
    SKEIN_RETURN_IF_ERROR(Norm(JointName("field_norm."), &head_.field_norm));
    SKEIN_RETURN_IF_ERROR(Norm(JointName("option_norm."), &head_.option_norm));
    SKEIN_RETURN_IF_ERROR(Linear(JointName("residual_scorer.0."), &head_.scorer));
    SKEIN_RETURN_IF_ERROR(
        ReadFloats(files_, JointName("residual_scorer.3.weight"), &head_.scorer_out));
    SKEIN_RETURN_IF_ERROR(
        ReadFloats(files_, JointName("residual_scorer.3.bias"), &head_.scorer_bias));
    const auto scale = [this](const char* name, double* out) {
      constexpr double kMostScale = 100;
      std::vector<float> value;
      SKEIN_RETURN_IF_ERROR(ReadFloats(files_, JointName(name), &value));
      *out = std::exp(std::min<double>(value.front(), std::log(kMostScale)));
      return Status::Ok();
    };
    SKEIN_RETURN_IF_ERROR(scale("prior_logit_scale", &head_.prior_scale));
    SKEIN_RETURN_IF_ERROR(scale("joint_logit_scale", &head_.joint_scale));
    std::vector<float> gate;
    SKEIN_RETURN_IF_ERROR(ReadFloats(files_, JointName("residual_gate"), &gate));
    head_.gate = 1 / (1 + std::exp(-double{gate.front()}));
    return Status::Ok();
  }

  Status Attention(const std::string& norm, const std::string& at, JointAttentionWeights* out) {
    SKEIN_RETURN_IF_ERROR(Norm(norm, &out->norm));
    SKEIN_RETURN_IF_ERROR(Rows(at + "in_proj_", 0, width_, &out->q));
    SKEIN_RETURN_IF_ERROR(Rows(at + "in_proj_", width_, 2 * width_, &out->kv));
    return Linear(at + "out_proj.", &out->o);
  }

  Status Norm(const std::string& at, LayerNormWeights* norm) {
    SKEIN_RETURN_IF_ERROR(ReadFloats(files_, at + "weight", &norm->weight));
    return ReadFloats(files_, at + "bias", &norm->bias);
  }

  Status Linear(const std::string& at, BiasedWeight* out) {
    SKEIN_ASSIGN_OR_RETURN(const TensorView view, files_.Find(at + "weight"));
    return Rows(at, 0, static_cast<int32_t>(view.shape[0]), out);
  }

  // Reads rows [first, first + count) of a matrix and of its biases.
  Status Rows(const std::string& at, int32_t first, int32_t count, BiasedWeight* out) {
    SKEIN_ASSIGN_OR_RETURN(const TensorView view, files_.Find(at + "weight"));
    out->weight = Packed(view, first, count);
    std::vector<float> bias;
    SKEIN_RETURN_IF_ERROR(ReadFloats(files_, at + "bias", &bias));
    out->bias.assign(bias.begin() + first, bias.begin() + first + count);
    return Status::Ok();
  }

  static PackedWeight Packed(const TensorView& view, int32_t first, int32_t count) {
    PackedWeight weight(count, static_cast<int32_t>(view.shape[1]), DType::kF32);
    const RowSource source = {.view = view, .num_rows = count, .tensor_row = first};
    source.Pack(0, count, false, &weight);
    return weight;
  }

  const ModelFiles& files_;
  const JointHeadFields& fields_;
  const int32_t width_;
  JointHeadWeights head_;
};

// Lists the tensors of a joint head.
class JointHeadLister {
 public:
  explicit JointHeadLister(const ModelConfig& config)
      : hidden_(config.hidden_size), fields_(config.decision.joint), width_(fields_.width) {}

  std::vector<ModelTensor> List() && {
    Norm(JointName("hidden_norm"), hidden_);
    for (const char* name :
         {"memory", "question", "option_question", "global", "option_context", "option_lexical"}) {
      Add(JointName(std::string(name) + "_projection.weight"), {width_, hidden_},
          TensorRole::kInput);
    }
    Add(JointName("type_embedding.weight"), {kTypeEmbeddings, width_}, TensorRole::kEmbedding);
    for (int32_t i = 0; i < fields_.option_layers; ++i) {
      const std::string at = OptionLayerName(i);
      Norm(at + "query_norm", width_);
      Norm(at + "memory_norm", width_);
      Attention(at + "attention.");
      Norm(at + "feedforward_norm", width_);
      Mlp(at + "feedforward.0", at + "feedforward.3");
    }
    Norm(JointName("option_summary_norm"), width_);
    for (int32_t i = 0; i < fields_.question_layers; ++i) {
      const std::string at = QuestionLayerName(i);
      for (const char* norm : {"norm1", "norm2", "norm3"}) Norm(at + norm, width_);
      Attention(at + "self_attn.");
      Attention(at + "multihead_attn.");
      Mlp(at + "linear1", at + "linear2");
    }
    Norm(JointName("field_norm"), width_);
    Norm(JointName("option_norm"), width_);
    Linear(JointName("residual_scorer.0"), width_, kScorerParts * width_, TensorRole::kInput);
    Linear(JointName("residual_scorer.3"), 1, width_, TensorRole::kOutput);
    for (const char* name : {"prior_logit_scale", "joint_logit_scale", "residual_gate"}) {
      Add(JointName(name), {}, TensorRole::kBias);
    }
    return std::move(tensors_);
  }

 private:
  void Add(const std::string& name, std::vector<int64_t> shape, TensorRole role) {
    tensors_.push_back({name, std::move(shape), role});
  }
  void Norm(const std::string& name, int64_t width) {
    Add(name + ".weight", {width}, TensorRole::kNorm);
    Add(name + ".bias", {width}, TensorRole::kBias);
  }
  void Linear(const std::string& name, int64_t n, int64_t k, TensorRole role) {
    Add(name + ".weight", {n, k}, role);
    Add(name + ".bias", {n}, TensorRole::kBias);
  }
  void Attention(const std::string& at) {
    Add(at + "in_proj_weight", {kQkvParts * width_, width_}, TensorRole::kInput);
    Add(at + "in_proj_bias", {kQkvParts * width_}, TensorRole::kBias);
    Linear(at + "out_proj", width_, width_, TensorRole::kOutput);
  }
  void Mlp(const std::string& up, const std::string& down) {
    Linear(up, fields_.mlp_width, width_, TensorRole::kInput);
    Linear(down, width_, fields_.mlp_width, TensorRole::kOutput);
  }

  const int64_t hidden_;
  const JointHeadFields& fields_;
  const int64_t width_;
  std::vector<ModelTensor> tensors_;
};

size_t BytesOf(const std::vector<float>& v) { return v.size() * sizeof(float); }
size_t BytesOf(const LayerNormWeights& norm) { return BytesOf(norm.weight) + BytesOf(norm.bias); }
size_t BytesOf(const BiasedWeight& w) { return w.weight.bytes() + BytesOf(w.bias); }
size_t BytesOf(const JointMlpWeights& mlp) {
  return BytesOf(mlp.norm) + BytesOf(mlp.up) + BytesOf(mlp.down);
}
size_t BytesOf(const JointAttentionWeights& a) {
  return BytesOf(a.norm) + BytesOf(a.q) + BytesOf(a.kv) + BytesOf(a.o);
}

}  // namespace

std::vector<ModelTensor> ListJointHeadTensors(const ModelConfig& config) {
  return JointHeadLister(config).List();
}

Result<JointHeadWeights> LoadJointHead(const ModelFiles& files, const ModelConfig& config) {
  return JointHeadReader(files, config.decision.joint).Read();
}

size_t JointHeadWeights::bytes() const {
  size_t bytes = BytesOf(hidden_norm) + BytesOf(summary_norm) + BytesOf(field_norm) +
                 BytesOf(option_norm) + BytesOf(scorer) + BytesOf(scorer_out) +
                 BytesOf(scorer_bias) + BytesOf(type_embedding);
  for (const PackedWeight* w :
       {&memory, &question, &option_question, &global, &context, &lexical}) {
    bytes += w->bytes();
  }
  for (const JointOptionLayer& layer : option_layers) {
    bytes += BytesOf(layer.attention) + BytesOf(layer.memory_norm) + BytesOf(layer.mlp);
  }
  for (const JointQuestionLayer& layer : question_layers) {
    bytes += BytesOf(layer.self_norm) + BytesOf(layer.qkv) + BytesOf(layer.self_o) +
             BytesOf(layer.attention) + BytesOf(layer.mlp);
  }
  return bytes;
}

}  // namespace skein
