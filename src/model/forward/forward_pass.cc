#include "model/forward/forward_pass.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace skein {
namespace {

ForwardLimits WithWeights(ForwardLimits limits, const ModelWeights& weights) {
  limits.dense_width = weights.dense_width();
  limits.int8 = weights.matrix_dtype == DType::kInt8;
  return limits;
}

// Chunks and heads must begin tiles.
bool UseRowTiles(const ForwardContext& context, const ForwardLimits& limits) {
  const ModelWeights& w = *context.weights;
  const ModelConfig& c = w.config;
  const bool whole = limits.chunk() == limits.max_tokens || limits.chunk() % kRowTileRows == 0;
  const Isa isa = context.kernels->isa();
  return NumericClassOf(isa, w.dtype) == NumericClass::kAmx && w.matrix_dtype == w.dtype &&
         !c.is_encoder() && c.num_experts == 0 && whole && c.hidden_size % kRowPiece == 0 &&
         c.head_dim % kRowPiece == 0;
}

}  // namespace

ForwardPass::ForwardPass(const ForwardContext& context, const ForwardLimits& limits)
    : context_(context),
      limits_(WithWeights(limits, *context.weights)),
      scale_(static_cast<float>(1.0 / std::sqrt(double(context.weights->config.head_dim)))),
      t_(SizeOf(context.weights->dtype)),
      row_tiles_(UseRowTiles(context, limits)),
      workspace_(context.weights->config, context.weights->dtype, limits_),
      expert_routes_(context.weights->config, limits_.chunk()),
      expert_cuts_(context.weights->config.num_experts),
      mean_left_(context.pooling == Pooling::kMean ? limits.max_logit_rows : 0) {
  SKEIN_CHECK(limits.max_tokens >= 1 && limits.max_logit_rows >= 1 && limits.max_own_blocks >= 0);
  const KvLayout& kv = context.kv_layout;
  SKEIN_CHECK(limits.max_own_blocks == 0 || !kv.contiguous);
  SKEIN_CHECK(kv.dtype == context.weights->dtype && kv.num_layers == config().num_layers);
  SKEIN_CHECK(kv.num_kv_heads == config().num_kv_heads && kv.head_dim == config().head_dim);
  const size_t tokens = limits.max_tokens;
  batch_.tokens.reserve(tokens);
  batch_.rows.reserve(tokens);
  batch_.logit_tokens.reserve(tokens);
  blocks_.reserve(tokens);
  forks_.reserve(tokens);
  wanted_.reserve(tokens);
  own_table_begin_.reserve(tokens);
  tiles_.reserve(tokens);
  tile_pieces_.reserve(tokens);
  sorted_rows_.reserve(tokens);
  batch_.label_outputs.reserve(tokens);
  batch_.embedded_rows.reserve(tokens);
  batch_.classified_rows.reserve(tokens);
  if (context.pooling == Pooling::kMean) mean_pieces_.reserve(tokens);
}

void ForwardPass::Begin() {
  SKEIN_CHECK(batch_.num_tokens() >= 1 && batch_.num_tokens() <= limits_.max_tokens);
  for (const int32_t token : batch_.tokens) SKEIN_CHECK(token >= 0 && token < config().vocab_size);
  for (const ForwardRow& row : batch_.rows) CheckRow(row);
  only_wanted_ = false;
  MakeTables();
  CutRows();
  CutTiles();
  CutOutputs();
  FindWanted();
  chunk_tokens_ = 0;
  cursor_ = {};
  outputs_taken_ = false;
}

void ForwardPass::CheckRow(const ForwardRow& row) const {
  const int32_t max_positions =
      config().is_encoder() ? config().max_position : context_.rope->num_positions();
  SKEIN_CHECK(row.begin >= 0 && row.begin + row.num_tokens <= max_positions);
  SKEIN_CHECK(row.begin == 0 || !config().is_encoder());
  const bool forks = row.fork.num_tokens > 0;
  const int32_t needed = forks ? row.begin / kKvBlockTokens : CeilDiv(row.begin, kKvBlockTokens);
  SKEIN_CHECK(std::ssize(row.block_table) >= needed);
  for (const int32_t block : row.block_table) {
    SKEIN_CHECK(block >= 0 && block < context_.kv_layout.num_blocks);
  }
  if (!forks) return;
  SKEIN_CHECK(row.fork.num_tokens == row.begin % kKvBlockTokens);
  SKEIN_CHECK(row.fork.from >= 0 && row.fork.from < context_.kv_layout.num_blocks);
  const size_t to = row.begin / kKvBlockTokens;
  SKEIN_CHECK(to >= row.block_table.size() || row.block_table[to] != row.fork.from);
}

void ForwardPass::MakeTables() {
  own_tables_.clear();
  own_table_begin_.clear();
  num_own_blocks_ = 0;
  for (const ForwardRow& row : batch_.rows) {
    const auto num_kept = static_cast<int32_t>(row.block_table.size());
    const int32_t num_own = CeilDiv(row.begin + row.num_tokens, kKvBlockTokens) - num_kept;
    own_table_begin_.push_back(num_own > 0 ? static_cast<int32_t>(own_tables_.size()) : -1);
    if (num_own <= 0) continue;
    own_tables_.insert(own_tables_.end(), row.block_table.begin(), row.block_table.end());
    for (int32_t i = 0; i < num_own; ++i) {
      own_tables_.push_back(context_.kv_layout.num_blocks + num_own_blocks_++);
    }
  }
  SKEIN_CHECK(num_own_blocks_ <= limits_.max_own_blocks);
}

std::span<const int32_t> ForwardPass::Table(int32_t row) const {
  const ForwardRow& r = batch_.rows[row];
  if (own_table_begin_[row] < 0) return r.block_table;
  const int32_t size = CeilDiv(r.begin + r.num_tokens, kKvBlockTokens);
  return std::span(own_tables_).subspan(own_table_begin_[row], size);
}

ProductShape ForwardPass::Shape(int32_t m, int32_t n, int32_t k, DType dtype) const {
  const bool matrix_unit = context_.kernels->isa() == Isa::kAmx && dtype != DType::kF32;
  return {.m = m, .n = n, .k = k, .element_bytes = SizeOf(dtype), .matrix_unit = matrix_unit};
}

void ForwardPass::CutRows() {
  blocks_.clear();
  forks_.clear();
  for (int32_t r = 0; r < static_cast<int32_t>(batch_.rows.size()); ++r) {
    const ForwardRow& row = batch_.rows[r];
    if (row.fork.num_tokens > 0) forks_.push_back(r);
    for (int32_t i = 0; i < row.num_tokens;) {
      const int32_t token = row.first_token + i;
      const int32_t in_chunk = token % limits_.chunk();
      const int32_t left_in_block = kKvBlockTokens - (row.begin + i) % kKvBlockTokens;
      const int32_t left = std::min(left_in_block, limits_.chunk() - in_chunk);
      const int32_t count = std::min(left, row.num_tokens - i);
      blocks_.push_back({r, token, count});
      i += count;
    }
  }
}

// Takes on chunk cursor_.row_chunk: cuts its products.
void ForwardPass::BeginRowChunk() {
  chunk_begin_ = cursor_.row_chunk * limits_.chunk();
  const int32_t m = std::min(limits_.chunk(), num_places() - chunk_begin_);
  if (m == chunk_tokens_) return;
  chunk_tokens_ = m;
  const int threads = context_.team->num_threads();
  const auto cut = [&](int32_t n, int32_t k) {
    return CutProduct(Shape(m, n, k, context_.weights->matrix_dtype), threads);
  };
  const ModelConfig& c = config();
  ProductShape qkv = Shape(m, qkv_width(), c.hidden_size, context_.weights->matrix_dtype);
  qkv.col_unit = c.head_dim;
  qkv_cut_ = CutProduct(qkv, threads);
  o_cut_ = cut(c.hidden_size, q_width());
  ProductShape gate_up =
      Shape(m, c.intermediate_padded(), c.hidden_size, context_.weights->matrix_dtype);
  gate_up.swiglu = !c.is_encoder();
  gate_up_cut_ = CutProduct(gate_up, threads);
  down_cut_ = cut(c.hidden_size, c.intermediate_size);
}

bool ForwardPass::AtBoundary(StopAt stop_at) const {
  if (stop_at == StopAt::kOperator) return true;
  if (stop_at != StopAt::kLayer || cursor_.row_chunk > 0) return false;
  return cursor_.op == Operator::kAttnNorm || cursor_.op == Operator::kFinalNorm;
}

ForwardStatus ForwardPass::Run(const std::atomic<bool>* stop, StopAt stop_at) {
  const ThreadTeam::TicketFn run_ticket = [this](int ticket, int) { RunTicket(ticket); };
  while (!Finished()) {
    if (stop != nullptr && AtBoundary(stop_at) && stop->load(std::memory_order_relaxed)) {
      return ForwardStatus::kStopped;
    }
    const int32_t num_tickets = NumTickets();
    cursor_.next_ticket = context_.team->Run(cursor_.next_ticket, num_tickets, run_ticket,
                                             stop_at == StopAt::kTicket ? stop : nullptr);
    if (cursor_.next_ticket < num_tickets) return ForwardStatus::kStopped;
    if (cursor_.op == Operator::kOutput && !outputs_taken_) {
      outputs_taken_ = true;
      return chunk().kind == OutputKind::kLogits ? ForwardStatus::kLogits : ForwardStatus::kOutputs;
    }
    Advance();
  }
  return ForwardStatus::kDone;
}

bool ForwardPass::Finished() const {
  return AtTail() && cursor_.layer == static_cast<int32_t>(chunks_.size());
}

void ForwardPass::Advance() {
  cursor_.next_ticket = 0;
  outputs_taken_ = false;
  if (cursor_.op == Operator::kQkvProj) return EndRowChunk(Operator::kAttnNorm);
  if (cursor_.op == Operator::kDownProj) return EndRowChunk(Operator::kQuantizeAttn);
  if (cursor_.op == Operator::kCollectX) {
    workspace_.EndLayer();
    const bool last = ++cursor_.layer == config().num_layers;
    cursor_.op = last ? Operator::kFinalNorm : Operator::kAttnNorm;
    if (last) cursor_.layer = 0;
  } else if (cursor_.op == Operator::kOutput) {
    cursor_.op = Operator::kFinalNorm;
    ++cursor_.layer;
  } else {
    cursor_.op = static_cast<Operator>(static_cast<int>(cursor_.op) + 1);
  }
  const bool in_last_layer = cursor_.layer == config().num_layers - 1;
  if (cursor_.op == Operator::kGatherWanted && in_last_layer) KeepWanted();
  if (cursor_.op == Operator::kAttnNorm || cursor_.op == Operator::kQuantizeAttn) {
    BeginRowChunk();
  }
  if (cursor_.op == Operator::kGatherExperts && !layer().experts.empty()) GroupExperts();
  if (cursor_.op == Operator::kFinalNorm && !Finished()) BeginChunk();
}

// Behind the last operator of a group that goes chunk by chunk: its first for the next chunk, or
// what follows it.
void ForwardPass::EndRowChunk(Operator first) {
  const bool last = chunk_begin_ + chunk_tokens_ == num_places();
  cursor_.row_chunk = last ? 0 : cursor_.row_chunk + 1;
  cursor_.op = last ? static_cast<Operator>(static_cast<int>(cursor_.op) + 1) : first;
  if (!last) BeginRowChunk();
}

int32_t ForwardPass::NumTickets() const {
  switch (cursor_.op) {
    case Operator::kEmbed:
      return CeilDiv(batch_.num_tokens(), kTokensPerTicket);
    case Operator::kAttnNorm:
    case Operator::kMlpNorm:
      return CeilDiv(chunk_tokens_, kTokensPerTicket);
    case Operator::kQuantizeAttn:
    case Operator::kQuantizeAct:
      return int8() ? CeilDiv(chunk_tokens_, kTokensPerTicket) : 0;
    case Operator::kQkvProj:
      return qkv_cut_.num_tickets();
    case Operator::kCollectQkv:
    case Operator::kCollectX:
      return NumCollectTickets();
    case Operator::kFork:
      return static_cast<int32_t>(forks_.size());
    case Operator::kGatherWanted:
      return NumGatherTickets();
    case Operator::kAttention:
      return static_cast<int32_t>(tiles_.size()) * config().num_kv_heads *
             CeilDiv(group(), kMaxQueryRows);
    case Operator::kOProj:
      return o_cut_.num_tickets();
    case Operator::kGate:
    case Operator::kGatherExperts:
    case Operator::kExpertGateUp:
    case Operator::kExpertDown:
    case Operator::kSumExperts:
      return NumExpertTickets();
    case Operator::kGateUpProj:
      return layer().experts.empty() ? gate_up_cut_.num_tickets() : 0;
    case Operator::kDownProj:
      return layer().experts.empty() ? down_cut_.num_tickets() : 0;
    case Operator::kFinalNorm:
      return NumFinalNormTickets();
    case Operator::kOutput:
      break;
  }
  return NumOutputTickets();
}

void ForwardPass::RunTicket(int32_t ticket) {
  const ModelConfig& c = config();
  ForwardWorkspace& w = workspace_;
  switch (cursor_.op) {
    case Operator::kEmbed:
      return c.is_encoder() ? EmbedEncoder(ticket) : Embed(ticket);
    case Operator::kAttnNorm:
      return AttnNorm(ticket);
    case Operator::kQkvProj:
      return QkvProj(ticket);
    case Operator::kCollectQkv:
      return CollectQkv(ticket);
    case Operator::kFork:
      return Fork(ticket);
    case Operator::kGatherWanted:
      return GatherWanted(ticket);
    case Operator::kAttention:
      return Attention(ticket);
    case Operator::kQuantizeAttn:
      return QuantizeTokens(ticket, w.attn + size_t(chunk_begin_) * q_width() * t_, q_width(),
                            q_width());
    case Operator::kOProj:
      return OProj(ticket);
    case Operator::kMlpNorm:
      return Norm(ticket, layer().mlp_norm, layer().mlp_norm_bias, w.x_out);
    case Operator::kGate:
    case Operator::kGatherExperts:
    case Operator::kExpertGateUp:
    case Operator::kExpertDown:
    case Operator::kSumExperts:
      return RunExpertTicket(ticket);
    case Operator::kGateUpProj:
      return c.is_encoder() ? Up(ticket) : GateUp(ticket);
    case Operator::kQuantizeAct:
      return QuantizeTokens(ticket, w.act, act_width(), c.intermediate_size);
    case Operator::kDownProj:
      return DownProj(ticket);
    case Operator::kCollectX:
      return CollectX(ticket);
    case Operator::kFinalNorm:
      return FinalNorm(ticket);
    case Operator::kOutput:
      return Output(ticket);
  }
}

}  // namespace skein
