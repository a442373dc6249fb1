#include "cuda/executor/cuda_pass.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"
#include "cuda/kernels/launches.h"

namespace skein::cuda {
namespace {

enum OutputOp { kOutputNorm, kHeadDense, kHead };
constexpr int kOutputOps = kHead + 1;

int32_t GroupSize(const ModelConfig& config) { return config.num_heads / config.num_kv_heads; }

float EmbeddingScale(const ModelConfig& config, DType dtype) {
  const float scale = config.decoder.embedding_scale;
  const bool rounds = config.decoder.rounds_embedding_scale && dtype == DType::kBf16;
  return rounds ? ToFloat(ToBf16(scale)) : scale;
}

}  // namespace

CudaPass::CudaPass(const CudaContext& context, const ForwardLimits& limits)
    : context_(context),
      limits_(limits),
      dtype_(context.model.weights->dtype),
      layout_(context_.model, limits_, batch_),
      integers_(context.device, context.model.weights->config.num_kv_heads,
                GroupSize(context.model.weights->config),
                WideRows(context.model.weights->dtype, context.model.kv_layout.head_dim_padded())),
      graphs_(context.device),
      slices_(config(), dtype_, context.model.weights->matrix_dtype,
              context.device->persistent_blocks() > 0),
      gathered_slices_(slices_),
      wide_(context.model.weights->config.vocab_size) {}

Result<std::unique_ptr<CudaPass>> CudaPass::Make(const CudaContext& context,
                                                 const ForwardLimits& limits) {
  std::unique_ptr<CudaPass> pass(new CudaPass(context, limits));
  SKEIN_ASSIGN_OR_RETURN(pass->memory_, Activations::Make(context.device, context.model, limits));
  return pass;
}

Status CudaPass::Begin(std::span<const BlockCopy> copies, std::span<const uint8_t> largest_alone) {
  layout_.Assign();
  SKEIN_CHECK(largest_alone.size() == batch_.logit_tokens.size());
  largest_alone_ = largest_alone;
  part_ = Part::kInput;
  layer_ = chunk_ = op_ = slice_ = 0;
  graph_.reset();
  num_tokens_ = batch_.num_tokens();
  const DeviceBatch::Padding padding = {TokensOfGraph(copies), context_.model.kv_layout.num_blocks};
  if (padding.num_tokens == 0) layout_.KeepOutputTokens();
  SKEIN_RETURN_IF_ERROR(integers_.Assign(batch_, layout_, copies, padding));
  layers_.set_num_tokens(num_tokens_);
  if (padding.num_tokens == 0) {
    AssignSlices(slice_us_);
    return Status::Ok();
  }
  num_tokens_ = padding.num_tokens;
  layers_.set_num_tokens(num_tokens_);
  return FindGraph();
}

// Decodes: single tokens, each with its logits, and nothing to copy before.
int32_t CudaPass::TokensOfGraph(std::span<const BlockCopy> copies) const {
  const int32_t count = batch_.num_tokens();
  const std::span<const OutputChunk> outputs = layout_.outputs();
  const bool decodes = std::ssize(batch_.rows) == count && outputs.size() == 1 &&
                       outputs[0].kind == OutputKind::kLogits && outputs[0].count == count;
  if (!context_.graphs || !decodes || !copies.empty() || !layout_.forks().empty()) return 0;
  if (layout_.num_own_blocks() > 0) return 0;
  const auto rounded = static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(count)));
  return std::min({rounded, limits_.max_tokens, limits_.max_logit_rows});
}

Status CudaPass::FindGraph() {
  const PassGraphs::Shape shape = {num_tokens_, integers_.tiles().num_segments, integers_.memory()};
  graph_ = graphs_.Find(shape);
  if (graph_) return Status::Ok();
  graph_ = 0;  // num_outputs
  AssignSlices(std::numeric_limits<double>::infinity());
  std::vector<Launch> launches;
  launcher_.set_recording(&launches);
  Input();
  for (int32_t layer = 0; layer < config().num_layers; ++layer) {
    layers_.set_layer(layer);
    for (int op = 0; op < kLayerOps; ++op) {
      if (layers_.Has(op)) layers_.Run(op, slices_.Of(op, config().IsLocal(layer)).front());
    }
  }
  for (const int op : {kOutputNorm, kHeadDense, kHead}) OutputOperator(op);
  FindLargest(num_tokens_);  // it costs little where nobody asks for it
  launcher_.set_recording(nullptr);
  SKEIN_ASSIGN_OR_RETURN(graph_, graphs_.Add(shape, launches));
  return Status::Ok();
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
  if (graph_ && part_ == Part::kInput) {
    context_.device->RunGraph(*graph_);
    CopyOutputs();
    step_us_ = 0;  // a signal waits for the whole step
    part_ = Part::kOutputs;
    op_ = kOutputOps;
    return PassStatus::kOutputs;
  }
  switch (part_) {
    case Part::kInput:
      Input();
      part_ = Part::kLayers;
      break;
    case Part::kLayers:
      LayerOperator();
      break;
    case Part::kOutputs:
      OutputOperator(op_);
      if (++op_ < kOutputOps) break;
      CopyOutputs();
      return PassStatus::kOutputs;
  }
  return PassStatus::kRunning;
}

void CudaPass::AssignSlices(double slice_us) {
  const DeviceBatch::Tiles tiles = integers_.tiles();
  slices_.Assign({num_tokens_, tiles.on_host, tiles.rows}, slice_us);
  if (integers_.num_gathered() == 0) return;
  const DeviceBatch::Tiles gathered = integers_.gathered_tiles();
  gathered_slices_.Assign({integers_.num_gathered(), gathered.on_host, gathered.rows}, slice_us);
}

// The slices of an operator of the layer that layers_ has.
std::span<const OperatorSlice> CudaPass::SlicesOf(int op) const {
  const bool gathered = layers_.Gathers() && op >= kAttention;
  return (gathered ? gathered_slices_ : slices_).Of(op, config().IsLocal(layer_));
}

void CudaPass::LayerOperator() {
  layers_.set_layer(layer_);
  const std::span<const OperatorSlice> slices = SlicesOf(op_);
  const OperatorSlice& slice = slices[slice_];
  step_us_ = slice.us;
  layers_.Run(op_, slice);
  if (++slice_ < std::ssize(slices)) return;
  slice_ = 0;
  while (++op_ < kLayerOps && !layers_.Has(op_)) {
  }
  if (op_ < kLayerOps) return;
  op_ = 0;
  if (++layer_ == config().num_layers) part_ = Part::kOutputs;
}

void CudaPass::Input() {
  step_us_ = OperatorSlices::BytesUs(6.0 * num_tokens_ * config().hidden_size);
  const KvLayout& kv = context_.model.kv_layout;
  if (integers_.num_copies() > 0) {
    launcher_.Run(CopySlotsLaunch(dtype_, {.copies = integers_.copies(),
                                           .num_copies = integers_.num_copies(),
                                           .num_kv_heads = kv.num_kv_heads,
                                           .head_dim_padded = kv.head_dim_padded(),
                                           .num_layers = kv.num_layers,
                                           .layer_bytes = static_cast<int64_t>(kv.layer_bytes()),
                                           .kv = launcher_.KvOf(0)}));
  }
  const DeviceWeights& weights = *context_.weights;
  const DeviceMatrix& matrix =
      weights.embedding_blocks.n > 0 ? weights.embedding_blocks : weights.output;
  const bool panels = weights.embedding == nullptr;
  launcher_.Run(EmbedLaunch(panels ? matrix.dtype : dtype_, panels,
                            {.tokens = integers_.tokens(),
                             .table = panels ? matrix.panels : weights.embedding,
                             .scales = matrix.scales,
                             .places = matrix.places,
                             .num_tokens = num_tokens_,
                             .hidden = config().hidden_size,
                             .words = matrix.words,
                             .scale = EmbeddingScale(config(), dtype_),
                             .x = memory_.x.as<float>()}));
}

void CudaPass::OutputOperator(int op) {
  const DeviceBatch::Outputs& outputs = integers_.outputs(chunk_);
  const bool embeds = chunk().kind == OutputKind::kEmbedding;
  step_us_ = OperatorSlices::BytesUs(8.0 * num_outputs() * config().hidden_size);
  if (op == kHeadDense) return HeadDense();
  if (op == kHead) return Head();
  launcher_.Norm(layers_.result(), context_.weights->final_norm, outputs.tokens, num_outputs(),
                 embeds ? DType::kF32 : dtype_,
                 embeds ? memory_.outputs.as<void>() : memory_.output_h.buffer.as<void>(),
                 embeds ? config().hidden_size : memory_.output_h.width);
}

void CudaPass::HeadDense() {
  const DeviceMatrix& w = context_.weights->head_dense;
  if (chunk().kind != OutputKind::kClasses || w.n == 0) return;
  launcher_.Multiply(memory_.output_h, w, GemmOutput::kStore,
                     {.bias = context_.weights->head_dense_bias,
                      .m = chunk().count,
                      .columns = w.n,
                      .out = memory_.outputs.as<void>(),
                      .ldo = w.n});
  launcher_.Run(ActivateLaunch(dtype_, {.gate = *GateOf(context_.model.weights->head_activation),
                                        .x = memory_.outputs.as<float>(),
                                        .num_rows = chunk().count,
                                        .width = w.n,
                                        .out = memory_.output_h.buffer.as<void>(),
                                        .ldo = memory_.output_h.width}));
}

void CudaPass::Head() {
  const DeviceBatch::Outputs& outputs = integers_.outputs(chunk_);
  if (chunk().kind == OutputKind::kEmbedding) return;
  const bool classes = chunk().kind == OutputKind::kClasses;
  const DeviceMatrix& w = classes ? context_.weights->head_out : context_.weights->output;
  GemmArgs args = {.bias = classes ? context_.weights->head_out_bias : nullptr,
                   .m = num_outputs(),
                   .columns = w.n,
                   .out = memory_.outputs.as<void>()};
  if (chunk().kind == OutputKind::kLabels) {
    args.panels = outputs.panels;
    args.columns = static_cast<int32_t>(outputs.panel_ids.size()) * kPanelCols;
  }
  args.ldo = args.columns;
  step_us_ = slices_.ProductUs(args.m, args.columns, w.k);
  launcher_.Multiply(memory_.output_h, w, GemmOutput::kStore, args);
}

void CudaPass::CopyOutputs() {
  int64_t width = config().hidden_size;
  switch (chunk().kind) {
    case OutputKind::kLogits:
      return CopyLogits();
    case OutputKind::kLabels:
      width = std::ssize(integers_.outputs(chunk_).panel_ids) * kPanelCols;
      break;
    case OutputKind::kClasses:
      width = config().num_classes;
      break;
    default:
      break;
  }
  context_.device->CopyToHost(memory_.on_host.as<void>(), memory_.outputs.as<void>(),
                              chunk().count * width * sizeof(float));
}

// A quotient may make two logits equal: then the first is the largest, so all are wanted.
bool CudaPass::LargestAlone(int32_t i) const {
  return chunk().kind == OutputKind::kLogits && config().decoder.logits_divisor == 1 &&
         largest_alone_[chunk().first + i] != 0;
}

void CudaPass::FindLargest(int32_t num_rows) {
  const int32_t vocab = config().vocab_size;
  const FindLargestArgs args = {.x = memory_.outputs.as<float>(),
                                .ldx = vocab,
                                .num_rows = num_rows,
                                .width = vocab,
                                .num_parts = LargestParts(vocab),
                                .parts = memory_.largest_parts.as<PartLargest>(),
                                .out = memory_.largest.as<RowLargest>()};
  launcher_.Run(FindLargestLaunch(args));
  if (args.num_parts > 1) launcher_.Run(MergeLargestLaunch(args));
}

// The rows that are wanted, run by run, and the largest of the others.
void CudaPass::CopyLogits() {
  const int64_t vocab = config().vocab_size;
  const int32_t count = chunk().count;
  int32_t num_copied = 0;
  for (int32_t begin = 0; begin < count; ++begin) {
    if (LargestAlone(begin)) continue;
    int32_t end = begin + 1;
    while (end < count && !LargestAlone(end)) ++end;
    context_.device->CopyToHost(memory_.on_host.as<float>() + begin * vocab,
                                memory_.outputs.as<float>() + begin * vocab,
                                (end - begin) * vocab * sizeof(float));
    num_copied += end - begin;
    begin = end - 1;
  }
  if (num_copied == count) return;
  if (!graph_) FindLargest(count);
  context_.device->CopyToHost(memory_.largest_on_host.as<void>(), memory_.largest.as<void>(),
                              count * sizeof(RowLargest));
}

void CudaPass::TakeOutputs() {
  const float divisor = config().decoder.logits_divisor;
  const bool logits = chunk().kind == OutputKind::kLogits || chunk().kind == OutputKind::kLabels;
  if (!logits || divisor == 1) return;
  const int64_t width = chunk().kind == OutputKind::kLogits
                            ? config().vocab_size
                            : std::ssize(integers_.outputs(chunk_).panel_ids) * kPanelCols;
  const std::span outputs(memory_.on_host.as<float>(), chunk().count * width);
  for (float& logit : outputs) logit /= divisor;
}

float* CudaPass::output(int32_t i) {
  SKEIN_CHECK(i >= 0 && i < chunk().count);
  float* const first = memory_.on_host.as<float>();
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
