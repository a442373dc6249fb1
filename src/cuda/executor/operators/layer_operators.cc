#include "cuda/executor/operators/layer_operators.h"

#include <algorithm>

#include "base/check.h"
#include "cuda/kernels/launches.h"

namespace skein::cuda {
bool LayerOperators::Has(int op) const {
  switch (op) {
    case kHeadInput:
      return config().decision.num_layers > 0 && layer_ == config().num_base_layers();
    case kLinearIn:
    case kDeltaGates:
    case kConv:
    case kScaleHeads:
    case kDelta:
    case kGatedNorm:
      return config().IsLinear(layer_);
    case kQkv:
    case kStoreHeads:
    case kAttention:
      return !config().IsLinear(layer_);
    case kQkvNorm:
      return config().decoder.qk_norm_spans_heads && !config().IsLinear(layer_);
    case kHeadRows:
    case kTerms:
      return config().encoder.relative.span > 0;
    case kFork:
      return integers_->num_forks() > 0 && !config().IsLinear(layer_);
    case kGather:
      return Gathers();
    case kGateNorm:  // h has it, unless rows are gathered or other chunks come between
      return config().decoder.attention_gate && !config().IsLinear(layer_) &&
             (Gathers() || num_tokens_ > limits_.chunk());
    case kGateProduct:
    case kGate:
      return config().decoder.attention_gate && !config().IsLinear(layer_);
    case kAttnBranch:
      return config().has_branches();
    case kGateUp:
      return has_mlp() && config().HasGate(layer_);
    case kUp:
    case kActivate:
      return !config().HasGate(layer_);
    case kDown:
      return has_mlp();
    case kMlpBranch:
      return config().has_branches() && !config().HasExperts(layer_);
    case kRoute:
    case kChooseExperts:
    case kListSlots:
    case kExpertGateUp:
    case kExpertDown:
    case kSumExperts:
      return config().HasExperts(layer_);
    default:
      return true;
  }
}

void LayerOperators::Run(int op, const ChunkRows& rows, const OperatorSlice& slice) {
  rows_ = rows;
  slice_ = slice;
  gathered_ = Gathers() && op > kGather;
  if (op >= kRoute) return experts_.Run(op, layer_, slice, rows.count, x());
  if (op > kLinearIn && op <= kGatedNorm) return linear_.Run(op, layer_, rows);
  op >= kMlpNorm ? Mlp(op) : Attention(op);
}

SharedMatrix LayerOperators::SharedBehind(int op, const ChunkRows& rows) const {
  const auto operand = [&](const Operand& matrix, int32_t num_rows, int32_t columns) {
    return SharedMatrix{matrix.Row(0), dtype_, num_rows, matrix.width, columns};
  };
  const int32_t hidden = config().hidden_size, m = rows.count;
  const auto residual = [&](float* matrix) {
    return SharedMatrix{reinterpret_cast<std::byte*>(matrix), DType::kF32, m, hidden, hidden};
  };
  switch (op) {
    case kAttention:
      return operand(memory_->attn, m, whole().num_heads * whole().head_dim);
    case kGateUp:
      return operand(act(), m, whole().MlpSize(layer_));
    case kExpertGateUp:
      return operand(memory_->experts.act, m * config().experts_per_token, whole().expert_size);
    case kDown:
      if (config().HasExperts(layer_)) return {};  // kSumExperts adds the rank's columns
      [[fallthrough]];
    case kO:
      return residual(config().has_branches() ? memory_->branch.as<float>() : XFrom(rows.first));
    case kSumExperts:
      return residual(XFrom(rows.first));
    default:
      return {};
  }
}

// h = norm(x); with replaces_x, x becomes the norm, too.
void LayerOperators::Norm(const float* weight, const float* bias, bool replaces_x) {
  const Operand& h = memory_->h;
  if (!config().is_encoder() || weight == nullptr) {
    return launcher_.Norm(x(), weight, nullptr, num_rows(), dtype_, h.buffer.as<void>(), h.width);
  }
  launcher_.Run(LayerNormLaunch(dtype_, {.x = x(),
                                         .ldx = config().hidden_size,
                                         .weight = weight,
                                         .bias = bias,
                                         .num_rows = num_rows(),
                                         .width = config().hidden_size,
                                         .eps = config().LayerNormEps(layer_),
                                         .normed = replaces_x ? x() : nullptr,
                                         .out = h.buffer.as<void>(),
                                         .ldo = h.width}));
}

// x = norm(x) + the embedding of the question's type.
void LayerOperators::BeginHead() {
  const int32_t hidden = config().hidden_size;
  launcher_.Run(LayerNormLaunch(dtype_, {.x = x(),
                                         .ldx = hidden,
                                         .weight = context_.weights->head_input_norm,
                                         .bias = context_.weights->head_input_norm_bias,
                                         .num_rows = num_rows(),
                                         .width = hidden,
                                         .eps = config().encoder.layer_norm_eps,
                                         .normed = x()}));
  launcher_.Run(AddTableRowsLaunch({.table = context_.weights->type_embedding,
                                    .rows = integers_->question_types() + rows_.first,
                                    .num_rows = num_rows(),
                                    .width = hidden,
                                    .x = x()}));
}

// x = x + attention(norm(x)).
void LayerOperators::Attention(int op) {
  // The norm of the embeddings, and each norm of BERT's family, begins the residual stream anew.
  const bool replaces_x = config().is_bert_family() || (config().is_encoder() && layer_ == 0);
  switch (op) {
    case kHeadInput:
      return BeginHead();
    case kAttnNorm:
      return Norm(layer().attn_norm, layer().attn_norm_bias, replaces_x);
    case kLinearIn:
      return Multiply(LoraProduct::kQkv, memory_->h, layer().linear.in, GemmOutput::kStore,
                      {.columns = layer().linear.in.n,
                       .out = memory_->linear.sums.as<void>(),
                       .ldo = layer().linear.in.n});
    case kQkv:
      return Multiply(LoraProduct::kQkv, memory_->h, layer().qkv, GemmOutput::kStore,
                      {.bias = layer().qkv_bias,
                       .columns = layer().qkv.n,
                       .out = memory_->qkv.as<void>(),
                       .ldo = qkv_width()});
    case kQkvNorm:
      return NormHeads();
    case kStoreHeads:
      return StoreHeads();
    case kHeadRows:
      return RoundHeads();
    case kTerms:
      return MultiplyTerms();
    case kFork:
      return CopyForks();
    case kAttention:
      return attention_.Run(layer_, rows_, slice_, Gathers());
    case kGather:
      return Gather();
    case kGateNorm:
      return Norm(layer().attn_norm, layer().attn_norm_bias, false);
    case kGateProduct:
      return Multiply(LoraProduct::kAttnGate, memory_->h, layer().attn_gate, GemmOutput::kStore,
                      {.columns = static_cast<int32_t>(q_width()),
                       .out = memory_->linear.sums.as<void>(),
                       .ldo = q_width()});
    case kGate:
      return GateAttention();
    case kO:
      return MultiplyToResidual(LoraProduct::kOutput, attn(), layer().o, layer().o_bias);
    case kAttnBranch:
      return AddBranch(layer().post_attn_norm);
    default:
      SKEIN_CHECK(false);
  }
}

// x = x + mlp(norm(x)).
void LayerOperators::Mlp(int op) {
  switch (op) {
    case kMlpNorm:
      return Norm(layer().mlp_norm, layer().mlp_norm_bias, config().is_bert_family());
    case kGateUp:
      return MultiplyGated();
    case kUp:
      return launcher_.Multiply(memory_->h, layer().gate_up, GemmOutput::kStore,
                                {.bias = layer().gate_up_bias,
                                 .m = slice_.count,
                                 .columns = layer().down.k,
                                 .out = memory_->up.as<void>(),
                                 .ldo = layer().down.k},
                                slice_.first);
    case kActivate:
      return Activate();
    case kDown:
      return MultiplyToResidual(LoraProduct::kDown, act(), layer().down, layer().down_bias);
    case kMlpBranch:
      return AddBranch(layer().post_mlp_norm);
    default:
      SKEIN_CHECK(false);
  }
}

// act = activation(up).
void LayerOperators::Activate() {
  const ModelConfig& c = config();
  const bool of_head = c.IsHeadLayer(layer_);
  launcher_.Run(
      ActivateLaunch(dtype_, {.gate = *GateOf(of_head ? c.decision.activation : c.activation),
                              .x = memory_->up.as<float>(),
                              .num_rows = num_rows(),
                              .width = layer().down.k,
                              .out = act().buffer.as<void>(),
                              .ldo = act().width}));
}

void LayerOperators::Multiply(LoraProduct product, const OperandRows& in, const DeviceMatrix& w,
                              GemmOutput output, GemmArgs args) {
  args.m = slice_.count;
  launcher_.Multiply(in, w, output, args, slice_.first);
  lora_.Add(Of(product), in, static_cast<float*>(args.out), args.ldo);
}

// act = gate(h · gate^T) * (h · up^T). A change by an adapter comes before the gate.
void LayerOperators::MultiplyGated() {
  const int32_t size = config().MlpSize(layer_), padded = Padded(size);
  const Gate gate = *GateOf(config().activation);
  GemmArgs args = {.bias = layer().gate_up_bias,
                   .m = slice_.count,
                   .columns = size,
                   .up_panel = padded / kPanelCols,
                   .gate = gate,
                   .out = launcher_.ColumnsIn(act(), whole().MlpSize(layer_)),
                   .ldo = act().width};
  if (!lora_.Changes(Of(LoraProduct::kGateUp))) {
    return launcher_.Multiply(memory_->h, layer().gate_up, GemmOutput::kGated, args, slice_.first);
  }
  args.columns = layer().gate_up.n;
  args.out = memory_->lora.gate_sums.as<void>();
  args.ldo = args.columns;
  Multiply(LoraProduct::kGateUp, memory_->h, layer().gate_up, GemmOutput::kStore, args);
  const int64_t bytes = act().width * static_cast<int64_t>(SizeOf(dtype_));
  launcher_.Run(
      GateSumsLaunch(dtype_, {.gate = gate,
                              .x = memory_->lora.gate_sums.as<float>() + slice_.first * args.ldo,
                              .ldx = args.ldo,
                              .up = padded,
                              .num_rows = slice_.count,
                              .width = size,
                              .out = act().buffer.as<std::byte>() + slice_.first * bytes,
                              .ldo = act().width}));
}

void LayerOperators::MultiplyToResidual(LoraProduct product, const OperandRows& in,
                                        const DeviceMatrix& w, const float* bias) {
  const bool of_shared_expert = product == LoraProduct::kDown && config().HasExperts(layer_);
  const bool branches = config().has_branches() || of_shared_expert;
  Multiply(product, in, w, branches ? GemmOutput::kStore : GemmOutput::kAdd,
           {.bias = bias,
            .columns = columns().size(),
            .out = columns_of(branches ? memory_->branch.as<float>() : x()),
            .ldo = config().hidden_size});
}

void LayerOperators::AddBranch(const float* norm) {
  launcher_.Run(BranchLaunch({.branch = memory_->branch.as<float>(),
                              .weight = norm,
                              .eps = config().decoder.rms_norm_eps,
                              .scale = config().decoder.residual_scale,
                              .num_rows = num_rows(),
                              .width = config().hidden_size,
                              .x = x()}));
}

// The norms of q and of k over all of their heads.
void LayerOperators::NormHeads() {
  const auto norm = [&](const float* weight, int64_t first, int64_t width) {
    float* const x = memory_->qkv.as<float>() + first;
    launcher_.Run(RmsNormLaunch(DType::kF32, {.x = x,
                                              .ldx = qkv_width(),
                                              .weight = weight,
                                              .num_rows = num_rows(),
                                              .width = static_cast<int32_t>(width),
                                              .eps = config().decoder.rms_norm_eps,
                                              .out = x,
                                              .ldo = qkv_width()}));
  };
  norm(layer().q_norm, 0, q_width());
  norm(layer().k_norm, q_width(), (qkv_width() - q_width()) / 2);
}

void LayerOperators::StoreHeads() {
  const ModelConfig& c = config();
  const bool rotates = c.Rotates(layer_), of_head = !c.decoder.qk_norm_spans_heads;
  const DeviceRope* const rope = c.IsLocal(layer_) ? context_.local_rope : context_.rope;
  const int32_t first = rows_.first;
  launcher_.Run(StoreHeadsLaunch(dtype_, {.qkv = memory_->qkv.as<float>(),
                                          .q_norm = of_head ? layer().q_norm : nullptr,
                                          .k_norm = of_head ? layer().k_norm : nullptr,
                                          .eps = c.decoder.rms_norm_eps,
                                          .cos = rotates ? rope->cos() : nullptr,
                                          .sin = rotates ? rope->sin() : nullptr,
                                          .positions = integers_->positions() + first,
                                          .rope_positions = integers_->rope_positions() + first,
                                          .blocks = integers_->blocks() + first,
                                          .num_tokens = num_rows(),
                                          .num_heads = c.num_heads,
                                          .num_kv_heads = c.num_kv_heads,
                                          .head_dim = c.head_dim,
                                          .rotary_dim = RotaryDim(c.rope, c.head_dim),
                                          .q = memory_->q.Row(first),
                                          .ldq = memory_->q.width,
                                          .kv = launcher_.KvOf(layer_)}));
}

// The rows of q and k, head by head, as attention reads them.
void LayerOperators::RoundHeads() {
  const Operand& heads = memory_->relative.heads;
  launcher_.Run(RmsNormLaunch(dtype_, {.x = memory_->qkv.as<float>(),
                                       .ldx = config().head_dim,
                                       .rows = integers_->relative().head_rows,
                                       .num_rows = 2 * config().num_heads * num_tokens_,
                                       .width = config().head_dim,
                                       .out = heads.buffer.as<void>(),
                                       .ldo = heads.width}));
}

// The products of the slice's heads with their rows of the table.
void LayerOperators::MultiplyTerms() {
  const Operand& heads = memory_->relative.heads;
  const DeviceMatrix& w = layer().distances;
  const int32_t num_rows = config().encoder.relative.num_rows();
  launcher_.Run(
      GroupedGemmLaunch(w.dtype, GemmOutput::kStore, dtype_, int64_t{slice_.count} * num_tokens_,
                        {.a = heads.buffer.as<void>(),
                         .lda = heads.width * static_cast<int64_t>(SizeOf(heads.dtype)) / 4,
                         .w = w.panels,
                         .m = num_tokens_,
                         .columns = num_rows,
                         .words = w.words,
                         .groups = {.counts = integers_->relative().head_counts,
                                    .slots = integers_->relative().head_slots,
                                    .capacity = num_tokens_,
                                    .first_group = slice_.first,
                                    .num_groups = slice_.count,
                                    .panels = num_rows / kPanelCols},
                         .out = memory_->relative.terms.as<void>(),
                         .ldo = num_rows}));
}

void LayerOperators::CopyForks() {
  if (integers_->num_forks() == 0) return;
  const KvLayout& kv = context_.model.kv_layout;
  launcher_.Run(CopySlotsLaunch(dtype_, {.copies = integers_->forks(),
                                         .num_copies = integers_->num_forks(),
                                         .num_kv_heads = kv.num_kv_heads,
                                         .head_dim_padded = kv.head_dim_padded(),
                                         .kv = launcher_.KvOf(layer_)}));
}

void LayerOperators::GateAttention() {
  launcher_.Run(AttentionGateLaunch(dtype_, {.gate = memory_->linear.sums.as<float>(),
                                             .num_rows = num_rows(),
                                             .width = static_cast<int32_t>(q_width()),
                                             .x = attn().data,
                                             .ldx = attn().width}));
}

// The rows of a chunk go to rows that no later chunk reads. If a row might be overwritten before it
// is read, the residual stream goes by way of other memory.
void LayerOperators::Gather() {
  const Operand &attn = memory_->attn, &q = memory_->q;
  const DeviceBatch::Gathered rows = integers_->gathered(rows_.index);
  const auto attn_words = static_cast<int32_t>(attn.width * SizeOf(dtype_) / 4);
  const int32_t hidden = config().hidden_size;
  float* const x_to = XFrom(rows.first);
  float* const by_way = rows.in_order == nullptr ? x_to : memory_->qkv.as<float>();
  launcher_.Run(GatherLaunch({.rows = rows.rows,
                              .num_rows = rows.count,
                              .first = {attn.Row(0), q.Row(rows.first), attn_words},
                              .second = {x(), by_way, hidden}}));
  if (rows.in_order == nullptr) return;
  launcher_.Run(GatherLaunch(
      {.rows = rows.in_order, .num_rows = rows.count, .first = {by_way, x_to, hidden}}));
}

}  // namespace skein::cuda
