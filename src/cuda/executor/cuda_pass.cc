#include "cuda/executor/cuda_pass.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/check.h"
#include "cuda/kernels/launches.h"

namespace skein::cuda {
namespace {

float EmbeddingScale(const ModelConfig& config, DType dtype) {
  const float scale = config.decoder.embedding_scale;
  const bool rounds = config.decoder.rounds_embedding_scale && dtype == DType::kBf16;
  return rounds ? ToFloat(ToBf16(scale)) : scale;
}

}  // namespace

CudaPass::CudaPass(PassRanks ranks)
    : ranks_(std::move(ranks)),
      lead_(*ranks_.front()),
      dtype_(context_.model.weights->dtype),
      layout_(context_.model, limits_, batch_),
      graphs_(context_.device),
      slices_(config(), context_.rank.count, dtype_, context_.model.weights->matrix_dtype,
              context_.device->persistent_blocks() > 0) {}

Result<std::unique_ptr<CudaPass>> CudaPass::Make(std::span<const CudaContext> contexts,
                                                 const ForwardLimits& limits,
                                                 int32_t carried_state) {
  PassRanks ranks;
  for (const CudaContext& context : contexts) {
    SKEIN_ASSIGN_OR_RETURN(ranks.emplace_back(), PassRank::Make(context, limits, carried_state));
  }
  std::unique_ptr<CudaPass> pass(new CudaPass(std::move(ranks)));
  if (!DeviceComputesOutputs(*pass->context_.model.weights)) {
    ForwardLimits outputs = limits;
    outputs.outputs_alone = true;
    pass->on_host_ = std::make_unique<ForwardPass>(pass->context_.model, outputs);
  }
  return pass;
}

int64_t CudaPass::activation_bytes() const {
  int64_t bytes = 0;
  for (const auto& rank : ranks_) bytes += rank->memory.bytes;
  return bytes;
}

void CudaPass::SetNumTokens(int32_t num_tokens) {
  num_tokens_ = num_tokens;
  for (const auto& rank : ranks_) rank->layers.set_num_tokens(num_tokens);
}

void CudaPass::CollectDraws() {
  draws_.clear();
  if (std::ranges::none_of(needs_, [](const LogitNeeds& of) { return of.draw.has_value(); }))
    return;
  for (const LogitNeeds& of : needs_) {
    RowDraw& to = draws_.emplace_back();
    if (!of.draw) continue;
    const auto random = static_cast<uint64_t>(of.draw->random * 0x1p53);
    to = {.temperature = of.draw->temperature,
          .top_k = of.draw->top_k,
          .top_p = of.draw->top_p,
          .min_p = of.draw->min_p,
          .random_low = static_cast<uint32_t>(random),
          .random_high = static_cast<uint32_t>(random >> 32)};
  }
}

Status CudaPass::Begin(std::span<const BlockCopy> copies, std::span<const LogitNeeds> needs) {
  layout_.Assign();
  SKEIN_CHECK(needs.size() == batch_.logit_tokens.size());
  needs_ = needs;
  CollectDraws();
  part_ = Part::kInput;
  layer_ = chunk_ = output_op_ = slice_ = 0;
  sliced_ = {};
  graph_.reset();
  SetNumTokens(batch_.num_tokens());
  const DeviceBatch::Padding padding = {TokensOfGraph(copies), context_.model.kv_layout.num_blocks};
  if (padding.num_tokens == 0 && config().gathers_outputs()) layout_.KeepOutputTokens();
  for (const auto& rank : ranks_) {
    rank->integers.set_always_shares(always_shares_);
    SKEIN_RETURN_IF_ERROR(rank->integers.Assign(batch_, layout_, copies, padding, draws_));
    rank->layers.FindAdapters(batch_, layout_);
  }
  if (padding.num_tokens == 0) return Status::Ok();
  SetNumTokens(padding.num_tokens);
  return FindGraph();
}

// Decodes: single tokens, each with its logits, and nothing to copy before.
int32_t CudaPass::TokensOfGraph(std::span<const BlockCopy> copies) const {
  const int32_t count = batch_.num_tokens();
  const std::span<const OutputChunk> outputs = layout_.outputs();
  const bool decodes = std::ssize(batch_.rows) == count && outputs.size() == 1 &&
                       outputs[0].kind == OutputKind::kLogits && outputs[0].count == count;
  if (!context_.graphs || !decodes || !copies.empty() || !layout_.forks().empty()) return 0;
  if (layout_.num_own_blocks() > 0 || layout_.has_adapters() || count > limits_.chunk()) return 0;
  if (config().has_linear_layers() && HasWaves(batch_)) return 0;
  const auto rounded = static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(count)));
  return std::min({rounded, limits_.chunk(), limits_.max_logit_rows});
}

Status CudaPass::FindGraph() {
  const DeviceBatch::Tiles tiles = lead_.integers.tiles(0);
  PassGraphs::Shape shape = {
      num_tokens_, tiles.num_segments, tiles.num_prefixes(), !draws_.empty(), {}};
  for (const auto& rank : ranks_) shape.integers.push_back(rank->integers.memory());
  graph_ = graphs_.Find(shape);
  if (graph_) return Status::Ok();
  graph_ = 0;  // num_outputs
  Device& device = *context_.device;
  device.BeginGraph();
  WaitForLead(ranks_);
  Input();
  for (int32_t layer = 0; layer < config().num_layers; ++layer) {
    BeginLayer(layer);
    do {
      const OperatorSlice& slice = Slices(std::numeric_limits<double>::infinity()).front();
      for (const auto& rank : ranks_) rank->layers.Run(walk_.op(), walk_.rows(), slice);
      ShareBehind(ranks_, walk_.op(), walk_.rows());
    } while (walk_.Next());
  }
  BeginChunk();
  for (int op = 0; op < kOutputOps; ++op) outputs_.Run(op);
  outputs_.DrawTokens();  // the largest logits cost little where nobody asks for them
  SKEIN_ASSIGN_OR_RETURN(graph_, device.EndGraph());
  graphs_.Add(shape, *graph_);
  return Status::Ok();
}

bool CudaPass::Finished() const {
  // Without outputs, nothing after the last layer's keys and values is needed.
  if (part_ == Part::kLayers && layer_ + 1 == config().num_layers && walk_.op() > kFork &&
      config().gathers_outputs()) {
    return layout_.outputs().empty();
  }
  return part_ == Part::kOutputs && chunk_ == std::ssize(layout_.outputs());
}

PassStatus CudaPass::Step() {
  if (part_ == Part::kOutputs && output_op_ == kOutputOps) {
    output_op_ = 0;
    ++chunk_;
  }
  if (Finished()) return PassStatus::kDone;
  if (graph_ && part_ == Part::kInput) {
    // The host waits for the graph before it gives a device other commands.
    LetLeadWait(ranks_);
    context_.device->RunGraph(*graph_);
    BeginChunk();
    outputs_.Copy(/*has_tokens=*/true);
    step_us_ = 0;  // a signal waits for the whole step
    part_ = Part::kOutputs;
    output_op_ = kOutputOps;
    return PassStatus::kOutputs;
  }
  switch (part_) {
    case Part::kInput:
      Input();
      part_ = Part::kLayers;
      BeginLayer(0);
      break;
    case Part::kLayers:
      LayerOperator();
      break;
    case Part::kOutputs:
      if (on_host_ != nullptr) {
        CopyResult();
        return PassStatus::kResult;
      }
      OutputOperator();
      if (++output_op_ < kOutputOps) break;
      outputs_.Copy(/*has_tokens=*/false);
      return PassStatus::kOutputs;
  }
  return PassStatus::kRunning;
}

std::span<const OperatorSlice> CudaPass::Slices(double slice_us) {
  const ChunkRows& rows = walk_.rows();
  const SlicedRows wanted = {lead_.layers.Gathers() && walk_.op() >= kAttention, rows.index,
                             rows.count};
  if (wanted != sliced_) {
    const DeviceBatch& integers = lead_.integers;  // the tiles of all ranks are equal
    const DeviceBatch::Tiles tiles =
        wanted.gathered ? integers.gathered_tiles(rows.index) : integers.tiles(rows.index);
    const BatchExtras& extras = integers.extras();
    const bool linear = !extras.state_chunks.empty();
    slices_.Assign({.num_tokens = rows.count,
                    .tiles = tiles.on_host,
                    .tile_rows = tiles.rows,
                    .locally_before = extras.locally_before,
                    .locally_after = extras.locally_after,
                    .delta_tokens = linear ? extras.state_chunks[rows.index].delta_tokens : 0,
                    .prefixes = tiles.prefixes_on_host,
                    .prefix_rows = tiles.prefix_rows,
                    .shared = tiles.shared_on_host},
                   slice_us);
    sliced_ = wanted;
  }
  return slices_.Of(walk_.op(), config().IsLocal(layer_));
}

void CudaPass::BeginLayer(int32_t layer) {
  layer_ = layer;
  for (const auto& rank : ranks_) rank->layers.set_layer(layer);
  walk_.Begin(num_tokens_);
}

void CudaPass::LayerOperator() {
  const int op = walk_.op();
  const std::span<const OperatorSlice> slices = Slices(slice_us_);
  const OperatorSlice& slice = slices[slice_];
  step_us_ = slice.us;
  for (const auto& rank : ranks_) rank->layers.Run(op, walk_.rows(), slice);
  if (++slice_ < std::ssize(slices)) return;
  step_us_ += ShareBehind(ranks_, op, walk_.rows());
  slice_ = 0;
  if (walk_.Next()) return;
  if (layer_ + 1 < config().num_layers) return BeginLayer(layer_ + 1);
  part_ = Part::kOutputs;
}

void CudaPass::Input() {
  step_us_ = OperatorSlices::BytesUs(6.0 * num_tokens_ * config().hidden_size);
  for (const auto& rank : ranks_) Input(*rank);
}

void CudaPass::Input(PassRank& rank) {
  const KvLayout& kv = rank.context.model.kv_layout;
  const DeviceBatch& integers = rank.integers;
  if (integers.num_copies() > 0) {
    rank.launcher.Run(
        CopySlotsLaunch(dtype_, {.copies = integers.copies(),
                                 .num_copies = integers.num_copies(),
                                 .num_kv_heads = kv.num_kv_heads,
                                 .head_dim_padded = kv.head_dim_padded(),
                                 .num_layers = kv.num_layers,
                                 .layer_bytes = static_cast<int64_t>(kv.layer_bytes()),
                                 .kv = rank.launcher.KvOf(0)}));
  }
  const DeviceWeights& weights = *rank.context.weights;
  const DeviceMatrix& matrix =
      weights.embedding_blocks.n > 0 ? weights.embedding_blocks : weights.output;
  const bool panels = weights.embedding == nullptr;
  rank.launcher.Run(EmbedLaunch(panels ? matrix.dtype : dtype_, panels,
                                {.tokens = integers.tokens(),
                                 .table = panels ? matrix.panels : weights.embedding,
                                 .scales = matrix.scales,
                                 .places = matrix.places,
                                 .num_tokens = num_tokens_,
                                 .hidden = config().hidden_size,
                                 .words = matrix.words,
                                 .scale = EmbeddingScale(config(), dtype_),
                                 .x = rank.memory.x.as<float>()}));
  AddToInput(rank, weights.segments, integers.segments());
  AddToInput(rank, weights.positions, integers.positions());
}

// Adds rows of an encoder's table to the embeddings.
void CudaPass::AddToInput(PassRank& rank, const float* table, const int32_t* rows) {
  if (table == nullptr) return;
  rank.launcher.Run(AddTableRowsLaunch({.table = table,
                                        .rows = rows,
                                        .num_rows = num_tokens_,
                                        .width = config().hidden_size,
                                        .x = rank.memory.x.as<float>()}));
}

void CudaPass::BeginChunk() {
  outputs_.Begin(chunk_, chunk(), graph_ ? num_tokens_ : chunk().count, lead_.memory.x.as<float>(),
                 needs_);
}

void CudaPass::OutputOperator() {
  if (output_op_ == 0) BeginChunk();
  step_us_ = OperatorSlices::BytesUs(8.0 * chunk().count * config().hidden_size);
  if (output_op_ == kHead) {
    step_us_ = slices_.ProductUs(chunk().count, outputs_.head_columns(), outputs_.head_terms());
  }
  outputs_.Run(output_op_);
}

// The residual stream at the tokens of outputs, which are the active ones.
void CudaPass::CopyResult() {
  context_.device->CopyToHost(lead_.memory.of_tokens.on_host.as<void>(), lead_.memory.x.as<float>(),
                              int64_t{layout_.num_active()} * config().hidden_size * sizeof(float));
}

ForwardPass& CudaPass::BeginOutputsOnHost() {
  on_host_->BeginOutputs(batch_, lead_.memory.of_tokens.on_host.as<float>());
  return *on_host_;
}

}  // namespace skein::cuda
