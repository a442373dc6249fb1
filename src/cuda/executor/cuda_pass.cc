#include "cuda/executor/cuda_pass.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "cuda/kernels/launches.h"

namespace skein::cuda {
namespace {

// The operators of a layer, in the order in which they run. A pass can stop before any of them.
enum LayerOp { kAttnNorm, kQkv, kStoreHeads, kFork, kAttention, kO, kMlpNorm, kGateUp, kDown };
constexpr int kLayerOps = kDown + 1;
enum OutputOp { kOutputNorm, kHead };
constexpr int kOutputOps = kHead + 1;

// The limit for partial sums of attention. Longer prompts compute some tiles at a time, so that
// these fit.
constexpr int64_t kPartialBytesMax = int64_t{64} << 20;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int32_t GroupSize(const ModelConfig& config) { return config.num_heads / config.num_kv_heads; }

float EmbeddingScale(const ModelConfig& config, DType dtype) {
  const float scale = config.decoder.embedding_scale;
  const bool rounds = config.decoder.rounds_embedding_scale && dtype == DType::kBf16;
  return rounds ? ToFloat(ToBf16(scale)) : scale;
}

float AttentionScale(const ModelConfig& config) {
  const double scale = config.decoder.attention_scale;
  return static_cast<float>(scale > 0 ? scale : 1.0 / std::sqrt(double(config.head_dim)));
}

}  // namespace

CudaPass::CudaPass(const CudaContext& context, const ForwardLimits& limits)
    : context_(context),
      limits_(limits),
      dtype_(context.model.weights->dtype),
      layout_(context_.model, limits_, batch_),
      integers_(context.device, GroupSize(context.model.weights->config)),
      wide_(context.model.weights->config.vocab_size) {}

Result<std::unique_ptr<CudaPass>> CudaPass::Make(const CudaContext& context,
                                                 const ForwardLimits& limits) {
  std::unique_ptr<CudaPass> pass(new CudaPass(context, limits));
  SKEIN_RETURN_IF_ERROR(pass->Allocate());
  return pass;
}

Status CudaPass::Add(size_t bytes, Buffer* buffer) {
  SKEIN_ASSIGN_OR_RETURN(*buffer, Buffer::Make(context_.device, Buffer::Place::kDevice, bytes));
  bytes_ += static_cast<int64_t>(bytes);
  return Status::Ok();
}

Status CudaPass::AddOperand(int64_t rows, int64_t width, Operand* operand) {
  operand->width = PaddedWidth(width, dtype_);
  operand->filled = width;
  return Add(rows * operand->width * SizeOf(dtype_), &operand->buffer);
}

Status CudaPass::Allocate() {
  const ModelConfig& c = config();
  const int64_t tokens = limits_.max_tokens, rows = limits_.max_logit_rows;
  SKEIN_RETURN_IF_ERROR(Add(tokens * c.hidden_size * sizeof(float), &x_));
  SKEIN_RETURN_IF_ERROR(AddOperand(tokens, c.hidden_size, &h_));
  SKEIN_RETURN_IF_ERROR(AddOperand(tokens, q_width(), &q_));
  SKEIN_RETURN_IF_ERROR(AddOperand(tokens, q_width(), &attn_));
  SKEIN_RETURN_IF_ERROR(AddOperand(tokens, c.intermediate_size, &act_));
  SKEIN_RETURN_IF_ERROR(Add(tokens * qkv_width() * sizeof(float), &qkv_));
  SKEIN_RETURN_IF_ERROR(
      Add(limits_.max_own_blocks * context_.model.kv_layout.block_bytes(), &own_kv_));
  AttentionArgs longest = {
      .num_tiles = static_cast<int32_t>(tokens * CeilDiv(GroupSize(c), kAttentionRows)),
      .num_segments =
          static_cast<int32_t>(CeilDiv(context_.model.rope->num_positions(), kKeysPerSegment)),
      .num_kv_heads = c.num_kv_heads,
      .head_dim = c.head_dim};
  SKEIN_RETURN_IF_ERROR(Add(std::min(PartialBytes(longest), kPartialBytesMax), &partial_));
  if (context_.model.weights->matrix_dtype == DType::kInt8) {
    const int64_t widest =
        std::max<int64_t>({c.hidden_size, q_width(), int64_t{c.intermediate_size}});
    SKEIN_RETURN_IF_ERROR(Add(tokens * PaddedWidth(widest, DType::kInt8), &int8_));
    SKEIN_RETURN_IF_ERROR(Add(tokens * sizeof(float), &scales_));
  }
  SKEIN_RETURN_IF_ERROR(AddOperand(rows, c.hidden_size, &output_h_));
  const int64_t panels_width = CeilDiv(c.vocab_size, kPanelCols) * kPanelCols;
  const int64_t widest_output = std::max<int64_t>({panels_width, c.hidden_size, c.num_classes});
  SKEIN_RETURN_IF_ERROR(Add(rows * widest_output * sizeof(float), &outputs_));
  SKEIN_ASSIGN_OR_RETURN(on_host_,
                         Buffer::Make(context_.device, Buffer::Place::kHost, outputs_.bytes()));
  return Status::Ok();
}

Status CudaPass::Begin(std::span<const BlockCopy> copies) {
  layout_.Assign();
  part_ = Part::kInput;
  layer_ = chunk_ = op_ = 0;
  return integers_.Assign(batch_, layout_, copies);
}

bool CudaPass::Finished() const {
  // Without outputs, nothing after the last layer's keys and values is needed.
  if (part_ == Part::kLayers && layer_ + 1 == config().num_layers && op_ > kFork) {
    return layout_.outputs().empty();
  }
  return part_ == Part::kOutputs && chunk_ == std::ssize(layout_.outputs());
}

PassStatus CudaPass::Step() {
  if (part_ == Part::kOutputs && op_ == kOutputOps) {
    op_ = 0;
    ++chunk_;
  }
  if (Finished()) return PassStatus::kDone;
  switch (part_) {
    case Part::kInput:
      Input();
      part_ = Part::kLayers;
      break;
    case Part::kLayers:
      LayerOperator(op_);
      if (++op_ < kLayerOps) break;
      op_ = 0;
      if (++layer_ == config().num_layers) part_ = Part::kOutputs;
      break;
    case Part::kOutputs:
      OutputOperator(op_);
      if (++op_ == kOutputOps) return PassStatus::kOutputs;
      break;
  }
  return PassStatus::kRunning;
}

void CudaPass::Input() {
  const KvLayout& kv = context_.model.kv_layout;
  if (integers_.num_copies() > 0) {
    context_.device->Run(
        CopySlotsLaunch(dtype_, {.copies = integers_.copies(),
                                 .num_copies = integers_.num_copies(),
                                 .num_kv_heads = kv.num_kv_heads,
                                 .head_dim_padded = kv.head_dim_padded(),
                                 .num_layers = kv.num_layers,
                                 .layer_bytes = static_cast<int64_t>(kv.layer_bytes()),
                                 .kv = LayerKv(0)}));
  }
  const DeviceMatrix& output = context_.weights->output;
  const bool panels = context_.weights->embedding == nullptr;
  context_.device->Run(EmbedLaunch(panels ? output.dtype : dtype_, panels,
                                   {.tokens = integers_.tokens(),
                                    .table = panels ? output.panels : context_.weights->embedding,
                                    .scales = output.scales,
                                    .num_tokens = batch_.num_tokens(),
                                    .hidden = config().hidden_size,
                                    .words = output.words,
                                    .scale = EmbeddingScale(config(), dtype_),
                                    .x = x_.as<float>()}));
}

void CudaPass::LayerOperator(int op) {
  const int32_t m = batch_.num_tokens(), hidden = config().hidden_size;
  switch (op) {
    case kAttnNorm:
      return Norm(layer().attn_norm, nullptr, m, dtype_, h_.buffer.as<void>(), h_.width);
    case kQkv:
      return Multiply(h_, layer().qkv, GemmOutput::kStore,
                      {.bias = layer().qkv_bias,
                       .m = m,
                       .columns = layer().qkv.n,
                       .out = qkv_.as<void>(),
                       .ldo = qkv_width()});
    case kStoreHeads:
      return StoreHeads();
    case kFork:
      return CopyForks();
    case kAttention:
      return Attend();
    case kO:
      return Multiply(
          attn_, layer().o, GemmOutput::kAdd,
          {.bias = layer().o_bias, .m = m, .columns = hidden, .out = x_.as<void>(), .ldo = hidden});
    case kMlpNorm:
      return Norm(layer().mlp_norm, nullptr, m, dtype_, h_.buffer.as<void>(), h_.width);
    case kGateUp:
      return GateUp();
    case kDown:
      return Multiply(act_, layer().down, GemmOutput::kAdd,
                      {.bias = layer().down_bias,
                       .m = m,
                       .columns = hidden,
                       .out = x_.as<void>(),
                       .ldo = hidden});
    default:
      SKEIN_CHECK(false);
  }
}

void CudaPass::Norm(const float* weight, const int32_t* rows, int32_t num_rows, DType out_dtype,
                    void* out, int64_t ldo) {
  context_.device->Run(RmsNormLaunch(out_dtype, {.x = x_.as<float>(),
                                                 .rows = rows,
                                                 .weight = weight,
                                                 .num_rows = num_rows,
                                                 .width = config().hidden_size,
                                                 .eps = config().decoder.rms_norm_eps,
                                                 .out = out,
                                                 .ldo = ldo}));
}

void CudaPass::Multiply(const Operand& in, const DeviceMatrix& w, GemmOutput output,
                        GemmArgs args) {
  args.a = in.buffer.as<void>();
  args.lda = in.width * static_cast<int64_t>(SizeOf(dtype_)) / 4;
  if (w.dtype == DType::kInt8) {
    // The integers after a row's end are multiplied by the zeros after the ends of the weights'
    // rows.
    const int64_t width = PaddedWidth(in.filled, DType::kInt8);
    context_.device->Run(QuantizeLaunch(dtype_, {.x = args.a,
                                                 .ldx = in.width,
                                                 .num_rows = args.m,
                                                 .width = static_cast<int32_t>(in.filled),
                                                 .out = int8_.as<int8_t>(),
                                                 .ldo = width,
                                                 .scales = scales_.as<float>()}));
    args.a = int8_.as<void>();
    args.lda = width / 4;
    args.a_scales = scales_.as<float>();
    args.w_scales = w.scales;
  }
  args.w = w.panels;
  args.words = w.words;
  context_.device->Run(GemmLaunch(w.dtype, output, dtype_, args));
}

KvPointers CudaPass::LayerKv(int32_t layer) const {
  const KvLayout& kv = context_.model.kv_layout;
  return {.pool = context_.kv + layer * kv.layer_bytes(),
          .own = own_kv_.as<uint8_t>(),
          .num_pool_blocks = kv.num_blocks,
          .block_bytes = static_cast<int64_t>(kv.block_bytes()),
          .head_bytes = static_cast<int64_t>(kv.head_bytes())};
}

void CudaPass::StoreHeads() {
  const ModelConfig& c = config();
  const bool rotates = c.Rotates(layer_);
  context_.device->Run(StoreHeadsLaunch(dtype_, {.qkv = qkv_.as<float>(),
                                                 .q_norm = layer().q_norm,
                                                 .k_norm = layer().k_norm,
                                                 .eps = c.decoder.rms_norm_eps,
                                                 .cos = rotates ? context_.cos : nullptr,
                                                 .sin = rotates ? context_.sin : nullptr,
                                                 .positions = integers_.positions(),
                                                 .blocks = integers_.blocks(),
                                                 .num_tokens = batch_.num_tokens(),
                                                 .num_heads = c.num_heads,
                                                 .num_kv_heads = c.num_kv_heads,
                                                 .head_dim = c.head_dim,
                                                 .rotary_dim = RotaryDim(c.rope, c.head_dim),
                                                 .q = q_.buffer.as<void>(),
                                                 .ldq = q_.width,
                                                 .kv = LayerKv(layer_)}));
}

void CudaPass::CopyForks() {
  if (integers_.num_forks() == 0) return;
  const KvLayout& kv = context_.model.kv_layout;
  context_.device->Run(CopySlotsLaunch(dtype_, {.copies = integers_.forks(),
                                                .num_copies = integers_.num_forks(),
                                                .num_kv_heads = kv.num_kv_heads,
                                                .head_dim_padded = kv.head_dim_padded(),
                                                .kv = LayerKv(layer_)}));
}

void CudaPass::Attend() {
  const ModelConfig& c = config();
  AttentionArgs args = {.tables = integers_.tables(),
                        .num_tiles = integers_.num_tiles(),
                        .num_segments = integers_.num_segments(),
                        .num_heads = c.num_heads,
                        .num_kv_heads = c.num_kv_heads,
                        .head_dim = c.head_dim,
                        .head_dim_padded = context_.model.kv_layout.head_dim_padded(),
                        .scale = AttentionScale(c),
                        .q = q_.buffer.as<void>(),
                        .ldq = q_.width,
                        .out = attn_.buffer.as<void>(),
                        .ldo = attn_.width,
                        .partial = partial_.as<float>(),
                        .kv = LayerKv(layer_)};
  int32_t most = args.num_tiles;
  if (args.num_segments > 1) {
    args.num_tiles = 1;
    const auto fit = static_cast<int64_t>(partial_.bytes()) / PartialBytes(args);
    SKEIN_CHECK(fit >= 1);
    most = static_cast<int32_t>(std::min<int64_t>(most, fit));
  }
  for (int32_t first = 0; first < integers_.num_tiles(); first += most) {
    args.tiles = integers_.tiles() + first;
    args.num_tiles = std::min(most, integers_.num_tiles() - first);
    context_.device->Run(AttentionLaunch(dtype_, args));
    if (args.num_segments > 1) context_.device->Run(MergeSegmentsLaunch(dtype_, args));
  }
}

void CudaPass::GateUp() {
  Multiply(h_, layer().gate_up, GemmOutput::kGated,
           {.bias = layer().gate_up_bias,
            .m = batch_.num_tokens(),
            .columns = config().intermediate_size,
            .up_panel = config().intermediate_padded() / kPanelCols,
            .out = act_.buffer.as<void>(),
            .ldo = act_.width});
}

void CudaPass::OutputOperator(int op) {
  const DeviceBatch::Outputs& outputs = integers_.outputs(chunk_);
  const bool embeds = chunk().kind == OutputKind::kEmbedding;
  if (op == kHead) return Head();
  Norm(context_.weights->final_norm, outputs.tokens, chunk().count, embeds ? DType::kF32 : dtype_,
       embeds ? outputs_.as<void>() : output_h_.buffer.as<void>(),
       embeds ? config().hidden_size : output_h_.width);
}

// Computes the matrix product of the outputs, unless they are embeddings, and copies the outputs to
// the host.
void CudaPass::Head() {
  const DeviceBatch::Outputs& outputs = integers_.outputs(chunk_);
  const bool classes = chunk().kind == OutputKind::kClasses;
  const DeviceMatrix& w = classes ? context_.weights->head_out : context_.weights->output;
  GemmArgs args = {.bias = classes ? context_.weights->head_out_bias : nullptr,
                   .m = chunk().count,
                   .columns = w.n,
                   .out = outputs_.as<void>()};
  if (chunk().kind == OutputKind::kLabels) {
    args.panels = outputs.panels;
    args.columns = static_cast<int32_t>(outputs.panel_ids.size()) * kPanelCols;
  }
  args.ldo = args.columns;
  if (chunk().kind == OutputKind::kEmbedding) {
    args.columns = config().hidden_size;
  } else {
    Multiply(output_h_, w, GemmOutput::kStore, args);
  }
  context_.device->CopyToHost(on_host_.as<void>(), outputs_.as<void>(),
                              size_t(chunk().count) * args.columns * sizeof(float));
}

void CudaPass::TakeOutputs() {
  const float divisor = config().decoder.logits_divisor;
  const bool logits = chunk().kind == OutputKind::kLogits || chunk().kind == OutputKind::kLabels;
  if (!logits || divisor == 1) return;
  const int64_t width = chunk().kind == OutputKind::kLogits
                            ? config().vocab_size
                            : std::ssize(integers_.outputs(chunk_).panel_ids) * kPanelCols;
  const std::span outputs(on_host_.as<float>(), chunk().count * width);
  for (float& logit : outputs) logit /= divisor;
}

float* CudaPass::output(int32_t i) {
  SKEIN_CHECK(i >= 0 && i < chunk().count);
  float* const first = on_host_.as<float>();
  switch (chunk().kind) {
    case OutputKind::kEmbedding:
      return first + int64_t{i} * config().hidden_size;
    case OutputKind::kClasses:
      return first + int64_t{i} * config().num_classes;
    case OutputKind::kLabels:
      break;
    default:
      return first + int64_t{i} * config().vocab_size;
  }
  const std::vector<int32_t>& panels = integers_.outputs(chunk_).panel_ids;
  const float* from = first + i * std::ssize(panels) * kPanelCols;
  for (const int32_t panel : panels) {
    const int32_t begin = panel * kPanelCols;
    std::copy_n(from, std::min(kPanelCols, config().vocab_size - begin), &wide_[begin]);
    from += kPanelCols;
  }
  return wide_.data();
}

}  // namespace skein::cuda
