#include "model/forward_pass.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace skein {

ForwardPass::ForwardPass(const ForwardContext& context, const ForwardLimits& limits)
    : context_(context),
      limits_(limits),
      scale_(static_cast<float>(1.0 / std::sqrt(double(context.weights->config.head_dim)))),
      t_(SizeOf(context.weights->dtype)),
      workspace_(*context.weights, limits) {
  SKEIN_CHECK(limits.max_tokens >= 1 && limits.max_logit_rows >= 1);
  const KvLayout& kv = context.kv_layout;
  SKEIN_CHECK(kv.dtype == context.weights->dtype && kv.num_layers == config().num_layers);
  SKEIN_CHECK(kv.num_kv_heads == config().num_kv_heads && kv.head_dim == config().head_dim);
  const size_t tokens = limits.max_tokens;
  batch_.tokens.reserve(tokens);
  batch_.rows.reserve(tokens);
  batch_.logit_tokens.reserve(tokens);
  blocks_.reserve(tokens);
  forks_.reserve(tokens);
  tiles_.reserve(tokens);
  tile_pieces_.reserve(tokens);
  sorted_rows_.reserve(tokens);
  batch_.label_outputs.reserve(tokens);
  batch_.embedded_rows.reserve(tokens);
  batch_.classified_rows.reserve(tokens);
}

void ForwardPass::Begin() {
  SKEIN_CHECK(batch_.num_tokens() >= 1 && batch_.num_tokens() <= limits_.max_tokens);
  for (const int32_t token : batch_.tokens) SKEIN_CHECK(token >= 0 && token < config().vocab_size);
  const int32_t max_positions =
      config().is_encoder() ? config().max_position : context_.rope->num_positions();
  for (const ForwardRow& row : batch_.rows) {
    const int32_t end = row.begin + row.num_tokens;
    SKEIN_CHECK(row.begin >= 0 && end <= max_positions);
    SKEIN_CHECK(row.begin == 0 || !config().is_encoder());
    SKEIN_CHECK(row.block_table.size() >= size_t(CeilDiv(end, kKvBlockTokens)));
    for (const int32_t block : row.block_table) {
      SKEIN_CHECK(block >= 0 && block < context_.kv_layout.num_blocks);
    }
    if (row.fork.num_tokens == 0) continue;
    SKEIN_CHECK(row.fork.num_tokens == row.begin % kKvBlockTokens);
    SKEIN_CHECK(row.fork.to == row.block_table[row.begin / kKvBlockTokens]);
    SKEIN_CHECK(row.fork.from != row.fork.to && row.fork.from >= 0 &&
                row.fork.from < context_.kv_layout.num_blocks);
  }
  CutRows();
  CutTiles();
  CutOutputs();
  const int32_t m = batch_.num_tokens();
  const int threads = context_.team->num_threads();
  const auto cut = [&](int32_t n, int32_t k) {
    return CutProduct(Shape(m, n, k, context_.weights->matrix_dtype), threads);
  };
  const ModelConfig& c = config();
  qkv_cut_ = cut(qkv_width(), c.hidden_size);
  o_cut_ = cut(c.hidden_size, q_width());
  // A ticket takes as many columns of gate as of up.
  gate_up_cut_ =
      cut(context_.weights->intermediate_padded(), (c.is_encoder() ? 1 : 2) * c.hidden_size);
  down_cut_ = cut(c.hidden_size, c.intermediate_size);
  cursor_ = {};
  outputs_taken_ = false;
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
      const int32_t left_in_block = kKvBlockTokens - (row.begin + i) % kKvBlockTokens;
      const int32_t count = std::min(left_in_block, row.num_tokens - i);
      blocks_.push_back({r, row.first_token + i, count});
      i += count;
    }
  }
}

ForwardStatus ForwardPass::Run(const std::atomic<bool>* stop) {
  const ThreadTeam::TicketFn run_ticket = [this](int ticket, int) { RunTicket(ticket); };
  while (!Finished()) {
    const int32_t num_tickets = NumTickets();
    cursor_.next_ticket = context_.team->Run(cursor_.next_ticket, num_tickets, run_ticket, stop);
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
  if (cursor_.op == Operator::kDownProj) {
    const bool last = ++cursor_.layer == config().num_layers;
    cursor_.op = last ? Operator::kFinalNorm : Operator::kAttnNorm;
    if (last) cursor_.layer = 0;
  } else if (cursor_.op == Operator::kOutput) {
    cursor_.op = Operator::kFinalNorm;
    ++cursor_.layer;
  } else {
    cursor_.op = static_cast<Operator>(static_cast<int>(cursor_.op) + 1);
  }
  if (cursor_.op == Operator::kFinalNorm && !Finished()) BeginChunk();
}

int32_t ForwardPass::NumTickets() const {
  switch (cursor_.op) {
    case Operator::kEmbed:
    case Operator::kAttnNorm:
    case Operator::kMlpNorm:
      return CeilDiv(batch_.num_tokens(), kTokensPerTicket);
    case Operator::kQuantizeAttn:
    case Operator::kQuantizeAct:
      return int8() ? CeilDiv(batch_.num_tokens(), kTokensPerTicket) : 0;
    case Operator::kQkvProj:
      return qkv_cut_.num_tickets();
    case Operator::kRope:
      return static_cast<int32_t>(blocks_.size());
    case Operator::kFork:
      return static_cast<int32_t>(forks_.size());
    case Operator::kAttention:
      return static_cast<int32_t>(tiles_.size()) * config().num_kv_heads *
             CeilDiv(group(), kMaxQueryRows);
    case Operator::kOProj:
      return o_cut_.num_tickets();
    case Operator::kGateUpProj:
      return gate_up_cut_.num_tickets();
    case Operator::kDownProj:
      return down_cut_.num_tickets();
    case Operator::kFinalNorm:
      // Pooling goes over a whole row.
      return chunk().kind == OutputKind::kEmbedding ? chunk().count
                                                    : CeilDiv(chunk().count, kTokensPerTicket);
    case Operator::kOutput:
      break;
  }
  return NumOutputTickets();
}

void ForwardPass::RunTicket(int32_t ticket) {
  const ModelConfig& c = config();
  const int32_t m = batch_.num_tokens();
  ForwardWorkspace& w = workspace_;
  switch (cursor_.op) {
    case Operator::kEmbed:
      return c.is_encoder() ? EmbedEncoder(ticket) : Embed(ticket);
    case Operator::kAttnNorm:
      return Norm(ticket, layer().attn_norm, layer().attn_norm_bias);
    case Operator::kQkvProj:
      return Product(ticket, qkv_cut_, w.h, c.hidden_size, m, layer().qkv, layer().qkv_bias, false,
                     w.qkv, qkv_width());
    case Operator::kRope:
      return RotateAndStore(ticket);
    case Operator::kFork:
      return Fork(ticket);
    case Operator::kAttention:
      return Attention(ticket);
    case Operator::kQuantizeAttn:
      return QuantizeTokens(ticket, w.attn, q_width(), q_width());
    case Operator::kOProj:
      return Product(ticket, o_cut_, w.attn, q_width(), m, layer().o, layer().o_bias, true, w.x,
                     c.hidden_size);
    case Operator::kMlpNorm:
      return Norm(ticket, layer().mlp_norm, layer().mlp_norm_bias);
    case Operator::kGateUpProj:
      return c.is_encoder() ? Up(ticket) : GateUp(ticket);
    case Operator::kQuantizeAct:
      return QuantizeTokens(ticket, w.act, context_.weights->intermediate_padded(),
                            c.intermediate_size);
    case Operator::kDownProj:
      return Product(ticket, down_cut_, w.act, context_.weights->intermediate_padded(), m,
                     layer().down, layer().down_bias, true, w.x, c.hidden_size);
    case Operator::kFinalNorm:
      return FinalNorm(ticket);
    case Operator::kOutput:
      return Output(ticket);
  }
}

}  // namespace skein
