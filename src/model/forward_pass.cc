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
      workspace_(*context.weights, limits, context.team->num_threads()) {
  SKEIN_CHECK(limits.max_tokens >= 1 && limits.max_logit_rows >= 1);
  const KvLayout& kv = context.kv_layout;
  SKEIN_CHECK(kv.dtype == context.weights->dtype && kv.num_layers == config().num_layers);
  SKEIN_CHECK(kv.num_kv_heads == config().num_kv_heads && kv.head_dim == config().head_dim);
  const size_t tokens = limits.max_tokens;
  batch_.tokens.reserve(tokens);
  batch_.rows.reserve(tokens);
  batch_.logit_tokens.reserve(tokens);
  blocks_.reserve(tokens);
  tiles_.reserve(tokens);
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
  }
  CutRows();
  CutOutputs();
  const int32_t m = batch_.num_tokens();
  const int threads = context_.team->num_threads();
  const auto cut = [&](int32_t rows, int32_t n, int32_t k, int32_t max_rows) {
    return CutProduct(rows, n, k, t_, max_rows, threads);
  };
  const ModelConfig& c = config();
  qkv_cut_ = cut(m, qkv_width(), c.hidden_size, kProductRowsPerTicket);
  o_cut_ = cut(m, c.hidden_size, q_width(), kProductRowsPerTicket);
  // A ticket takes as many columns of gate as of up.
  gate_up_cut_ = cut(m, context_.weights->intermediate_padded(),
                     (c.is_encoder() ? 1 : 2) * c.hidden_size, kMlpRowsPerTicket);
  down_cut_ = cut(m, c.hidden_size, c.intermediate_size, kProductRowsPerTicket);
  cursor_ = {};
  outputs_taken_ = false;
}

void ForwardPass::CutRows() {
  const int32_t group = config().num_heads / config().num_kv_heads;
  const int32_t tile_tokens = std::max(kMaxQueryRows / group, 1);
  blocks_.clear();
  tiles_.clear();
  for (int32_t r = 0; r < static_cast<int32_t>(batch_.rows.size()); ++r) {
    const ForwardRow& row = batch_.rows[r];
    for (int32_t i = 0; i < row.num_tokens;) {
      const int32_t left_in_block = kKvBlockTokens - (row.begin + i) % kKvBlockTokens;
      const int32_t count = std::min(left_in_block, row.num_tokens - i);
      blocks_.push_back({r, row.first_token + i, count});
      i += count;
    }
    for (int32_t i = 0; i < row.num_tokens; i += tile_tokens) {
      tiles_.push_back({r, row.first_token + i, std::min(tile_tokens, row.num_tokens - i)});
    }
  }
}

ForwardStatus ForwardPass::Run(const std::atomic<bool>* stop) {
  const ThreadTeam::TicketFn run_ticket = [this](int ticket, int thread) {
    RunTicket(ticket, thread);
  };
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
  const int32_t group = config().num_heads / config().num_kv_heads;
  switch (cursor_.op) {
    case Operator::kEmbed:
    case Operator::kAttnNorm:
    case Operator::kMlpNorm:
      return CeilDiv(batch_.num_tokens(), kTokensPerTicket);
    case Operator::kQkvProj:
      return qkv_cut_.num_tickets();
    case Operator::kRope:
      return static_cast<int32_t>(blocks_.size());
    case Operator::kAttention:
      return static_cast<int32_t>(tiles_.size()) * config().num_kv_heads *
             CeilDiv(group, kMaxQueryRows);
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

void ForwardPass::RunTicket(int32_t ticket, int thread) {
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
    case Operator::kAttention:
      return Attention(ticket);
    case Operator::kOProj:
      return Product(ticket, o_cut_, w.attn, q_width(), m, layer().o, layer().o_bias, true, w.x,
                     c.hidden_size);
    case Operator::kMlpNorm:
      return Norm(ticket, layer().mlp_norm, layer().mlp_norm_bias);
    case Operator::kGateUpProj:
      return c.is_encoder() ? Up(ticket, thread) : GateUp(ticket, thread);
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
