#include "model/weights/decision_weights.h"

#include <algorithm>
#include <utility>

#include "io/tensor_view.h"
#include "model/weights/row_source.h"

namespace skein {
namespace {

constexpr int64_t kFeatures = DecisionHeadWeights::kActionFeatures;

std::string LayerPrefix(int32_t index) { return "head.layers." + std::to_string(index) + "."; }

// Reads the tensors of the head. CheckDecisionTensors has checked them before.
class HeadReader {
 public:
  HeadReader(const ModelFiles& files, ModelWeights* weights) : files_(files), weights_(weights) {}

  Status Read() {
    const ModelConfig& config = weights_->config;
    DecisionHeadWeights& head = weights_->decision;
    head.input_norm = std::move(weights_->final_norm);
    head.input_norm_bias = std::move(weights_->final_norm_bias);
    SKEIN_RETURN_IF_ERROR(ReadFloats(files_, "type_emb.weight", &head.type_embedding));
    for (int32_t i = 0; i < config.decision.num_layers; ++i) {
      SKEIN_RETURN_IF_ERROR(
          ReadLayer(LayerPrefix(i), &weights_->layers[config.num_base_layers() + i]));
    }
    SKEIN_RETURN_IF_ERROR(ReadFloats(files_, "scorer.0.weight", &weights_->final_norm));
    SKEIN_RETURN_IF_ERROR(ReadFloats(files_, "scorer.0.bias", &weights_->final_norm_bias));
    weights_->head_activation = Activation::kGelu;
    SKEIN_RETURN_IF_ERROR(Linear("scorer.1.", &weights_->head_dense, &weights_->head_dense_bias));
    SKEIN_RETURN_IF_ERROR(Linear("scorer.3.", &weights_->head_out, &weights_->head_out_bias));
    return config.decision.num_actions > 0 ? ReadActions(&head) : Status::Ok();
  }

 private:
  Status ReadLayer(const std::string& at, LayerWeights* layer) {
    SKEIN_RETURN_IF_ERROR(ReadFloats(files_, at + "norm1.weight", &layer->attn_norm));
    SKEIN_RETURN_IF_ERROR(ReadFloats(files_, at + "norm1.bias", &layer->attn_norm_bias));
    SKEIN_RETURN_IF_ERROR(Linear(at + "self_attn.in_proj_", &layer->qkv, &layer->qkv_bias));
    SKEIN_RETURN_IF_ERROR(Linear(at + "self_attn.out_proj.", &layer->o, &layer->o_bias));
    SKEIN_RETURN_IF_ERROR(ReadFloats(files_, at + "norm2.weight", &layer->mlp_norm));
    SKEIN_RETURN_IF_ERROR(ReadFloats(files_, at + "norm2.bias", &layer->mlp_norm_bias));
    SKEIN_RETURN_IF_ERROR(Linear(at + "linear1.", &layer->gate_up, &layer->gate_up_bias));
    return Linear(at + "linear2.", &layer->down, &layer->down_bias);
  }

  // Columns [0, hidden) of the first layer multiply a state, the other columns multiply the
  // features.
  Status ReadActions(DecisionHeadWeights* head) {
    const int64_t hidden = weights_->config.hidden_size;
    std::vector<float> in;
    SKEIN_RETURN_IF_ERROR(ReadFloats(files_, "act_head.0.weight", &in));
    SKEIN_RETURN_IF_ERROR(ReadFloats(files_, "act_head.0.bias", &head->action_in_bias));
    head->action_in = PackedWeight(kActionWidth, static_cast<int32_t>(hidden), weights_->dtype);
    for (int32_t row = 0; row < kActionWidth; ++row) {
      const float* const from = in.data() + row * (hidden + kFeatures);
      head->action_in.PackRows(row, 1, from, DType::kF32);
      head->action_features.insert(head->action_features.end(), from + hidden,
                                   from + hidden + kFeatures);
    }
    SKEIN_RETURN_IF_ERROR(ReadFloats(files_, "act_head.2.weight", &head->action_out));
    return ReadFloats(files_, "act_head.2.bias", &head->action_out_bias);
  }

  Status Linear(const std::string& prefix, PackedWeight* weight, std::vector<float>* bias) {
    SKEIN_ASSIGN_OR_RETURN(const TensorView view, files_.Find(prefix + "weight"));
    *weight = PackedWeight(static_cast<int32_t>(view.shape[0]), static_cast<int32_t>(view.shape[1]),
                           weights_->dtype);
    const RowSource source = {.view = view, .num_rows = weight->n()};
    source.Pack(0, weight->n(), false, weight);
    ModelFiles::ReleasePages(view);
    return ReadFloats(files_, prefix + "bias", bias);
  }

  const ModelFiles& files_;
  ModelWeights* const weights_;
};

}  // namespace

std::vector<ModelTensor> ListDecisionTensors(const ModelConfig& config) {
  if (config.decision.is_compact()) return ListCompactHeadTensors(config);
  if (config.decision.is_joint()) return ListJointHeadTensors(config);
  const int64_t hidden = config.hidden_size, mlp = config.decision.intermediate_size;
  std::vector<ModelTensor> tensors;
  const auto linear = [&](const std::string& prefix, int64_t n, int64_t k,
                          TensorRole role = TensorRole::kInput) {
    tensors.push_back({prefix + "weight", {n, k}, role});
    tensors.push_back({prefix + "bias", {n}, TensorRole::kBias});
  };
  const auto norm = [&](const std::string& name) {
    tensors.push_back({name + ".weight", {hidden}, TensorRole::kNorm});
    tensors.push_back({name + ".bias", {hidden}, TensorRole::kBias});
  };
  tensors.push_back({"type_emb.weight", {kTypeEmbeddings, hidden}, TensorRole::kEmbedding});
  for (int32_t i = 0; i < config.decision.num_layers; ++i) {
    const std::string at = LayerPrefix(i);
    norm(at + "norm1");
    linear(at + "self_attn.in_proj_", 3 * hidden, hidden);
    linear(at + "self_attn.out_proj.", hidden, hidden, TensorRole::kOutput);
    norm(at + "norm2");
    linear(at + "linear1.", mlp, hidden);
    linear(at + "linear2.", hidden, mlp, TensorRole::kOutput);
  }
  norm("scorer.0");
  linear("scorer.1.", hidden, hidden);
  linear("scorer.3.", 1, hidden);
  if (config.decision.num_actions == 0) return tensors;
  linear("act_head.0.", kActionWidth, hidden + kFeatures);
  linear("act_head.2.", config.decision.num_actions, kActionWidth);
  return tensors;
}

Status CheckDecisionTensors(const ModelFiles& files, const ModelConfig& config) {
  for (const ModelTensor& tensor : ListDecisionTensors(config)) {
    if (!files.Has(tensor.name) && !files.is_gguf()) {  // Find tells a GGUF file's own name
      return Status(StatusCode::kInvalidArgument, "the model lacks the tensor " + tensor.name);
    }
    SKEIN_RETURN_IF_ERROR(files.Find(tensor.name, tensor.shape).status());
  }
  return Status::Ok();
}

Status LoadDecisionHead(const ModelFiles& files, ModelWeights* weights) {
  if (weights->config.decision.is_joint()) {
    SKEIN_ASSIGN_OR_RETURN(weights->joint_head, LoadJointHead(files, weights->config));
    return Status::Ok();
  }
  if (!weights->config.decision.is_compact()) return HeadReader(files, weights).Read();
  SKEIN_ASSIGN_OR_RETURN(weights->compact_head, LoadCompactHead(files, weights->config));
  return Status::Ok();
}

}  // namespace skein
