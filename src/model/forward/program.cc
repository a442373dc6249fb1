#include "model/forward/program.h"

#include "model/forward/experts/shared_expert_operator.h"
#include "model/forward/linear/conv_operator.h"
#include "model/forward/linear/delta_gates_operator.h"
#include "model/forward/linear/delta_operator.h"
#include "model/forward/linear/gated_norm_operator.h"
#include "model/forward/operators/attention_gate_operator.h"
#include "model/forward/operators/attention_operator.h"
#include "model/forward/operators/branch_operator.h"
#include "model/forward/operators/collect_operator.h"
#include "model/forward/operators/embed_operator.h"
#include "model/forward/operators/encoder_embed_operator.h"
#include "model/forward/operators/experts_operator.h"
#include "model/forward/operators/fork_operator.h"
#include "model/forward/operators/gate_up_operator.h"
#include "model/forward/operators/gather_operator.h"
#include "model/forward/operators/linear_operator.h"
#include "model/forward/operators/lora_operator.h"
#include "model/forward/operators/norm_operator.h"
#include "model/forward/operators/qkv_norm_operator.h"
#include "model/forward/operators/qkv_operator.h"
#include "model/forward/operators/quantize_operator.h"
#include "model/forward/operators/up_operator.h"
#include "model/forward/outputs/compact_head_operator.h"
#include "model/forward/outputs/embedding_operator.h"
#include "model/forward/outputs/head_operator.h"
#include "model/forward/outputs/joint_head.h"
#include "model/forward/outputs/labels_operator.h"
#include "model/forward/outputs/output_norm_operator.h"
#include "model/forward/outputs/sparse_operator.h"
#include "model/forward/pass_state.h"
#include "model/forward/relative/distance_operator.h"
#include "model/forward/relative/relative_attention_operator.h"

namespace skein {
namespace {

// Adds the first half of the adapters' change of the product that follows, if rows can have an
// adapter. The product itself adds the second half.
void AddLora(PassState& pass, std::string_view name, LoraProduct product, int32_t layer,
             const Operand& in, OperatorList& list) {
  if (pass.has_lora()) list.ByChunk<LoraOperator>(pass, name, product, layer, in);
}

// Rounds the rows of the product that follows to int8, if its weights need that.
void AddQuantize(PassState& pass, std::string_view name, const Operand& rows,
                 const PackedWeight& weight, OperatorList& list) {
  if (TakesInt8Rows(weight.dtype())) {
    list.ByChunk<QuantizeOperator>(pass, name, rows, weight.k());
  }
}

// Whether the layer's first norm is that of the embeddings. This includes BERT's family.
bool NormsEmbedding(const PassState& pass, int32_t index) {
  return pass.config().is_encoder() && index == 0;
}

// Adds the product for q, k and v of a layer with attention, and the attention.
void AddAttention(PassState& pass, int32_t index, OperatorList& list) {
  const LayerWeights& layer = pass.weights().layers[index];
  const Operand h = pass.NormedRows();
  AddLora(pass, "lora_qkv", LoraProduct::kQkv, index, h, list);
  if (pass.config().decoder.qk_norm_spans_heads) {
    list.ByChunk<LinearOperator>(pass, LinearSpec{"qkv", layer.qkv, &layer.qkv_bias, h,
                                                  LinearOutput::kQkv, index, LoraProduct::kQkv});
    list.ByChunk<QkvNormOperator>(pass, index);
  } else {
    list.ByChunk<QkvOperator>(pass, index);
  }
  if (pass.limits.chunk_outputs == ChunkOutputs::kCollected) {
    list.Whole<CollectOperator>(pass, CollectOperator::What::kQkv);
  }
  list.Whole<ForkOperator>(pass, index);
  if (pass.relative_rows != nullptr) list.Whole<DistanceOperator>(pass, index);
  if (index + 1 == pass.config().num_layers) list.Whole<GatherOperator>(pass);
  if (pass.relative_rows != nullptr) {
    list.Whole<RelativeAttentionOperator>(pass, index);
  } else {
    list.Whole<AttentionOperator>(pass, index);
  }
  if (!pass.config().decoder.attention_gate) return;
  // The normed rows are computed again, since those of other chunks have been overwritten.
  list.ByChunk<NormOperator>(pass, NormSpec{.name = "gate_norm",
                                            .weight = layer.attn_norm,
                                            .bias = layer.attn_norm_bias,
                                            .x = &ForwardWorkspace::x});
  AddLora(pass, "lora_gate", LoraProduct::kAttnGate, index, h, list);
  list.ByChunk<LinearOperator>(
      pass, LinearSpec{"attn_gate", layer.attn_gate, nullptr, h, LinearOutput::kSums, index,
                       LoraProduct::kAttnGate});
  list.ByChunk<AttentionGateOperator>(pass);
}

// Adds the operators of a linear layer that replace attention.
void AddLinearAttention(PassState& pass, int32_t index, OperatorList& list) {
  const Operand h = pass.NormedRows();
  AddLora(pass, "lora_in", LoraProduct::kQkv, index, h, list);
  list.ByChunk<LinearOperator>(
      pass, LinearSpec{"linear_in", pass.weights().layers[index].linear.in, nullptr, h,
                       LinearOutput::kSums, index, LoraProduct::kQkv});
  list.ByChunk<DeltaGatesOperator>(pass, index);
  list.ByChunk<ConvOperator>(pass, index);
  list.ByChunk<DeltaOperator>(pass, index);
  list.ByChunk<GatedNormOperator>(pass, index);
}

// Adds the first half of a layer: x = x + attention(norm(x)).
void AddMixer(PassState& pass, int32_t index, OperatorList& list) {
  const LayerWeights& layer = pass.weights().layers[index];
  const int32_t width = pass.attn_width(index);
  const Operand attn = {&ForwardWorkspace::attn, width, true, pass.row_tiles};
  const ModelConfig& config = pass.config();
  const bool is_linear = config.IsLinear(index);
  const bool replaces_x = config.is_bert_family() || NormsEmbedding(pass, index);
  if (config.decision.num_layers > 0 && index == config.num_base_layers()) {
    const DecisionHeadWeights& head = pass.weights().decision;
    list.ByChunk<NormOperator>(pass, NormSpec{.name = "head_input",
                                              .weight = head.input_norm,
                                              .bias = head.input_norm_bias,
                                              .x = &ForwardWorkspace::x,
                                              .replaces_x = true,
                                              .eps = config.encoder.layer_norm_eps,
                                              .type_embedding = &head.type_embedding});
  }
  NormSpec norm = {"attn_norm",          layer.attn_norm, layer.attn_norm_bias,
                   &ForwardWorkspace::x, replaces_x,      config.LayerNormEps(index)};
  if (!is_linear) norm.zeroes_layer = index;
  list.ByChunk<NormOperator>(pass, norm);
  is_linear ? AddLinearAttention(pass, index, list) : AddAttention(pass, index, list);
  AddQuantize(pass, "quantize_attn", attn, layer.o, list);
  AddLora(pass, "lora_o", LoraProduct::kOutput, index, attn, list);
  const bool branches = pass.config().has_branches();
  list.ByChunk<LinearOperator>(
      pass, LinearSpec{"o", layer.o, &layer.o_bias, attn,
                       branches ? LinearOutput::kBranch : LinearOutput::kNewResidual, index,
                       LoraProduct::kOutput});
  if (branches) {
    list.ByChunk<BranchOperator>(
        pass, BranchSpec{"post_attn_norm", layer.post_attn_norm, &ForwardWorkspace::x});
  }
}

// Adds the shared expert, which every token goes through. It is added last to the residual.
void AddSharedExpert(PassState& pass, int32_t index, const Operand& act, OperatorList& list) {
  const LayerWeights& layer = pass.weights().layers[index];
  list.ByChunk<GateUpOperator>(pass, index);
  AddQuantize(pass, "quantize_act", act, layer.down, list);
  list.ByChunk<LinearOperator>(pass,
                               LinearSpec{"down", layer.down, nullptr, act, LinearOutput::kBranch});
  list.ByChunk<SharedExpertOperator>(pass, layer);
}

// Adds the second half of a layer: x = x + mlp(norm(x)).
void AddMlp(PassState& pass, int32_t index, OperatorList& list) {
  const LayerWeights& layer = pass.weights().layers[index];
  const Operand h = pass.NormedRows();
  const ModelConfig& config = pass.config();
  const bool has_gate = config.HasGate(index);
  const int64_t act_width = has_gate ? pass.act_width(index) : layer.gate_up.n();
  const Operand act = {&ForwardWorkspace::act, act_width, false, pass.row_tiles};
  list.ByChunk<NormOperator>(
      pass, NormSpec{"mlp_norm", layer.mlp_norm, layer.mlp_norm_bias, &ForwardWorkspace::x_out,
                     config.is_bert_family(), config.LayerNormEps(index)});
  if (!layer.experts.empty()) {
    for (const ExpertStage stage : kExpertStages) {
      if (stage == ExpertStage::kQuantize && !pass.int8()) continue;
      list.ByChunk<ExpertsOperator>(pass, layer, stage);
    }
    if (layer.shared_gate.n() > 0) AddSharedExpert(pass, index, act, list);
  } else {
    if (!has_gate) {
      list.ByChunk<UpOperator>(pass, index);
    } else {
      AddLora(pass, "lora_gate_up", LoraProduct::kGateUp, index, h, list);
      list.ByChunk<GateUpOperator>(pass, index);
    }
    AddQuantize(pass, "quantize_act", act, layer.down, list);
    AddLora(pass, "lora_down", LoraProduct::kDown, index, act, list);
    const bool branches = pass.config().has_branches();
    list.ByChunk<LinearOperator>(
        pass, LinearSpec{"down", layer.down, &layer.down_bias, act,
                         branches ? LinearOutput::kBranch : LinearOutput::kResidual, index,
                         LoraProduct::kDown});
    if (branches) {
      list.ByChunk<BranchOperator>(
          pass, BranchSpec{"post_mlp_norm", layer.post_mlp_norm, &ForwardWorkspace::x_out});
    }
  }
  if (pass.limits.chunk_outputs == ChunkOutputs::kCollected) {
    list.Whole<CollectOperator>(pass, CollectOperator::What::kResidual);
  }
}

void AddMean(PassState& pass, OutputKind kind, OperatorList& list) {
  list.Whole<EmbeddingOperator>(pass, EmbeddingStage::kNorm, kind);
  list.Whole<EmbeddingOperator>(pass, EmbeddingStage::kMean, kind);
}

// Adds the operators of a compact head, which compute the logits of questions.
void AddCompactHead(PassState& pass, OperatorList& list) {
  using enum CompactStage;
  if (pass.config().decision.is_pointer) {
    for (const CompactStage stage : {kRead, kSummary, kOption, kScore}) {
      list.Whole<CompactHeadOperator>(pass, stage);
    }
    return;
  }
  for (const CompactStage stage : {kRead, kIn, kInputNorm}) {
    list.Whole<CompactHeadOperator>(pass, stage);
  }
  for (int32_t i = 0; i < pass.config().decision.compact_layers; ++i) {
    for (const CompactStage stage :
         {kAttnNorm, kQkv, kStore, kAttend, kOut, kMlpNorm, kUp, kDown}) {
      list.Whole<CompactHeadOperator>(pass, stage, i);
    }
  }
  for (const CompactStage stage : {kFinalNorm, kSummary, kOption, kScore}) {
    list.Whole<CompactHeadOperator>(pass, stage);
  }
}

// Adds the scores of a decision model's options, and the hidden layer of the actions' scorer.
void AddDecisionOutputs(PassState& pass, ForwardProgram& program) {
  if (pass.config().decision.is_compact()) {
    return AddCompactHead(pass, program.of(OutputKind::kQuestions));
  }
  if (pass.config().decision.is_joint()) {
    return AddJointHead(pass, program.of(OutputKind::kQuestions));
  }
  const ModelWeights& w = pass.weights();
  const Operand h = {&ForwardWorkspace::logit_h, pass.config().hidden_size};
  OperatorList& markers = program.of(OutputKind::kMarkers);
  markers.Whole<OutputNormOperator>(pass, OutputKind::kMarkers);
  markers.Whole<HeadOperator>(pass);
  markers.Whole<LinearOperator>(
      pass, LinearSpec{"markers", w.head_out, &w.head_out_bias, h, LinearOutput::kOutputs});
  if (pass.config().decision.num_actions == 0) return;
  OperatorList& actions = program.of(OutputKind::kActions);
  actions.Whole<OutputNormOperator>(pass, OutputKind::kActions);
  actions.Whole<LinearOperator>(
      pass, LinearSpec{"actions", w.decision.action_in, &w.decision.action_in_bias, h,
                       LinearOutput::kOutputs});
}

// Adds the head that predicts masked tokens, and the sparse vectors of its logits.
void AddSparse(PassState& pass, OperatorList& list) {
  const ModelWeights& w = pass.weights();
  list.Whole<OutputNormOperator>(pass, OutputKind::kSparse);
  list.Whole<HeadOperator>(pass);
  list.Whole<LinearOperator>(
      pass, LinearSpec{"masked_logits", w.output, &w.output_bias,
                       Operand{&ForwardWorkspace::logit_h, pass.config().hidden_size},
                       LinearOutput::kOutputs});
  list.Whole<SparseOperator>(pass);
}

void AddLayers(PassState& pass, ForwardProgram& program) {
  if (pass.config().is_bert_family()) {
    program.input.Whole<EncoderEmbedOperator>(pass);
  } else {
    program.input.Whole<EmbedOperator>(pass);
  }
  program.layers.resize(pass.config().num_layers);
  for (int32_t i = 0; i < pass.config().num_layers; ++i) {
    AddMixer(pass, i, program.layers[i]);
    AddMlp(pass, i, program.layers[i]);
  }
}

void AddOutputs(PassState& pass, ForwardProgram& program) {
  const ModelWeights& w = pass.weights();
  const Operand h = {&ForwardWorkspace::logit_h, pass.config().hidden_size};

  OperatorList& logits = program.of(OutputKind::kLogits);
  logits.Whole<OutputNormOperator>(pass, OutputKind::kLogits);
  logits.Whole<LinearOperator>(pass, LinearSpec{.name = "logits",
                                                .weight = w.output,
                                                .bias = nullptr,
                                                .in = h,
                                                .output = LinearOutput::kOutputs,
                                                .are_logits = true});

  OperatorList& labels = program.of(OutputKind::kLabels);
  labels.Whole<OutputNormOperator>(pass, OutputKind::kLabels);
  labels.Whole<LabelsOperator>(pass);

  OperatorList& embedding = program.of(OutputKind::kEmbedding);
  if (pass.context.pooling == Pooling::kMean) {
    AddMean(pass, OutputKind::kEmbedding, embedding);
  } else {
    embedding.Whole<EmbeddingOperator>(pass, EmbeddingStage::kToken, OutputKind::kEmbedding);
  }

  program.of(OutputKind::kStates)
      .Whole<EmbeddingOperator>(pass, EmbeddingStage::kToken, OutputKind::kStates);

  if (pass.config().head == Head::kMaskedLanguageModel) {
    AddSparse(pass, program.of(OutputKind::kSparse));
  }

  OperatorList& classes = program.of(OutputKind::kClasses);
  if (pass.config().encoder.classifies_mean) {
    AddMean(pass, OutputKind::kClasses, classes);
  } else {
    classes.Whole<OutputNormOperator>(pass, OutputKind::kClasses);
  }
  if (w.head_dense.n() > 0) classes.Whole<HeadOperator>(pass);
  classes.Whole<LinearOperator>(
      pass, LinearSpec{"classes", w.head_out, &w.head_out_bias, h, LinearOutput::kOutputs});
}

}  // namespace

ForwardProgram MakeProgram(PassState& pass) {
  ForwardProgram program;
  if (!pass.limits.outputs_alone) AddLayers(pass, program);
  pass.config().head == Head::kDecision ? AddDecisionOutputs(pass, program)
                                        : AddOutputs(pass, program);
  return program;
}

}  // namespace skein
