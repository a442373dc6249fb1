#include "model/forward_pass.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace skein {
namespace {

constexpr int32_t kTokensPerTicket = 16;       // of the operators that go token by token
constexpr int32_t kProductRowsPerTicket = 96;  // of a matrix product

int32_t CeilDiv(int32_t a, int32_t b) { return (a + b - 1) / b; }

}  // namespace

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
}

void ForwardPass::Begin() {
  SKEIN_CHECK(batch_.num_tokens() >= 1 && batch_.num_tokens() <= limits_.max_tokens);
  for (const int32_t token : batch_.tokens) SKEIN_CHECK(token >= 0 && token < config().vocab_size);
  for (const ForwardRow& row : batch_.rows) {
    const int32_t end = row.begin + row.num_tokens;
    SKEIN_CHECK(row.begin >= 0 && end <= context_.rope->num_positions());
    SKEIN_CHECK(row.block_table.size() >= size_t(CeilDiv(end, kKvBlockTokens)));
    for (const int32_t block : row.block_table) {
      SKEIN_CHECK(block >= 0 && block < context_.kv_layout.num_blocks);
    }
  }
  CutRows();
  const int32_t m = batch_.num_tokens();
  const int threads = context_.team->num_threads();
  const auto cut = [&](int32_t rows, int32_t n, int32_t k, int32_t max_rows) {
    return CutProduct(rows, n, k, t_, max_rows, threads);
  };
  const ModelConfig& c = config();
  qkv_cut_ = cut(m, qkv_width(), c.hidden_size, kProductRowsPerTicket);
  o_cut_ = cut(m, c.hidden_size, q_width(), kProductRowsPerTicket);
  // A ticket takes as many columns of gate as of up.
  gate_up_cut_ =
      cut(m, context_.weights->intermediate_padded(), 2 * c.hidden_size, kMlpRowsPerTicket);
  down_cut_ = cut(m, c.hidden_size, c.intermediate_size, kProductRowsPerTicket);
  cursor_ = {};
  logits_taken_ = false;
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
    if (cursor_.op == Operator::kOutput && !logits_taken_) {
      logits_taken_ = true;
      return ForwardStatus::kLogits;
    }
    Advance();
  }
  return ForwardStatus::kDone;
}

bool ForwardPass::Finished() const { return AtTail() && num_logit_rows() <= 0; }

void ForwardPass::Advance() {
  cursor_.next_ticket = 0;
  logits_taken_ = false;
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
  if (cursor_.op == Operator::kFinalNorm && num_logit_rows() > 0) {
    output_cut_ = CutProduct(num_logit_rows(), config().vocab_size, config().hidden_size, t_,
                             kProductRowsPerTicket, context_.team->num_threads());
  }
}

int32_t ForwardPass::num_logit_rows() const {
  const auto wanted = static_cast<int32_t>(batch_.logit_tokens.size());
  return std::min(wanted - first_logit_row(), limits_.max_logit_rows);
}

const float* ForwardPass::logits(int32_t i) const {
  SKEIN_CHECK(i >= 0 && i < num_logit_rows() && logits_taken_);
  return workspace_.logits + size_t(i) * config().vocab_size;
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
      return CeilDiv(num_logit_rows(), kTokensPerTicket);
    case Operator::kOutput:
      break;
  }
  return output_cut_.num_tickets();
}

void ForwardPass::RunTicket(int32_t ticket, int thread) {
  const ModelConfig& c = config();
  const int32_t m = batch_.num_tokens();
  ForwardWorkspace& w = workspace_;
  switch (cursor_.op) {
    case Operator::kEmbed:
      return Embed(ticket);
    case Operator::kAttnNorm:
      return Norm(ticket, layer().attn_norm);
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
      return Norm(ticket, layer().mlp_norm);
    case Operator::kGateUpProj:
      return GateUp(ticket, thread);
    case Operator::kDownProj:
      return Product(ticket, down_cut_, w.act, context_.weights->intermediate_padded(), m,
                     layer().down, layer().down_bias, true, w.x, c.hidden_size);
    case Operator::kFinalNorm:
      return FinalNorm(ticket);
    case Operator::kOutput:
      return Product(ticket, output_cut_, w.logit_h, c.hidden_size, num_logit_rows(),
                     context_.weights->output, {}, false, w.logits, c.vocab_size);
  }
}

void ForwardPass::Embed(int32_t ticket) {
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, batch_.num_tokens());
  for (int32_t i = begin; i < end; ++i) {
    context_.weights->EmbeddingRow(batch_.tokens[i],
                                   workspace_.x + size_t(i) * config().hidden_size);
  }
}

void ForwardPass::Norm(int32_t ticket, const std::vector<float>& weight) {
  const size_t hidden = config().hidden_size;
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, batch_.num_tokens());
  for (int32_t i = begin; i < end; ++i) {
    context_.kernels->RmsNorm(workspace_.x + i * hidden, weight.data(), config().rms_norm_eps,
                              config().hidden_size, workspace_.h + i * hidden * t_,
                              context_.weights->dtype);
  }
}

void ForwardPass::FinalNorm(int32_t ticket) {
  const size_t hidden = config().hidden_size;
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, num_logit_rows());
  for (int32_t i = begin; i < end; ++i) {
    const size_t token = batch_.logit_tokens[first_logit_row() + i];
    context_.kernels->RmsNorm(workspace_.x + token * hidden, context_.weights->final_norm.data(),
                              config().rms_norm_eps, config().hidden_size,
                              workspace_.logit_h + i * hidden * t_, context_.weights->dtype);
  }
}

void ForwardPass::Product(int32_t ticket, const ProductCut& cut, const std::byte* a, int64_t lda,
                          int32_t m, const PackedWeight& w, const std::vector<float>& bias,
                          bool add_to_out, float* out, int64_t ldo) {
  const int64_t row = cut.row_begin(ticket);
  const int32_t col = cut.col_begin(ticket);
  context_.kernels->Gemm({
      .a = a + row * lda * static_cast<int64_t>(t_),
      .lda = lda,
      .m = std::min(cut.rows, m - static_cast<int32_t>(row)),
      .w = &w,
      .n_begin = col,
      .n_end = std::min(col + cut.cols, w.n()),
      .bias = bias.empty() ? nullptr : bias.data(),
      .add_to_out = add_to_out,
      .out = out + row * ldo,
      .ldo = ldo,
  });
}

void ForwardPass::RotateHead(const float* norm, int32_t position, float* head) const {
  const int32_t d = config().head_dim;
  if (norm != nullptr) {
    context_.kernels->RmsNorm(head, norm, config().rms_norm_eps, d, head, DType::kF32);
  }
  context_.kernels->Rope(head, context_.rope->cos(position), context_.rope->sin(position), d);
}

void ForwardPass::RotateAndStore(int32_t ticket) {
  const ModelConfig& c = config();
  const Piece& piece = blocks_[ticket];
  const ForwardRow& row = batch_.rows[piece.row];
  const int32_t first_position = row.begin + piece.first_token - row.first_token;
  const int32_t block = row.block_table[first_position / kKvBlockTokens];
  std::byte* kv = context_.kv + context_.kv_layout.Offset(cursor_.layer, block, 0);
  // A block that changed hands still holds its former owner's keys and values. Zero them: the
  // attention may read, though never see, what lies behind the last key.
  if (first_position % kKvBlockTokens == 0) {
    std::fill_n(kv, context_.kv_layout.block_bytes(), std::byte{0});
  }
  const float* q_norm = layer().q_norm.empty() ? nullptr : layer().q_norm.data();
  const float* k_norm = layer().k_norm.empty() ? nullptr : layer().k_norm.data();
  for (int32_t i = 0; i < piece.num_tokens; ++i) {
    const size_t token = piece.first_token + i;
    const int32_t position = first_position + i;
    float* q = workspace_.qkv + token * qkv_width();
    for (int32_t h = 0; h < c.num_heads; ++h) RotateHead(q_norm, position, q + h * c.head_dim);
    context_.kernels->Convert(q, q_width(), workspace_.q + token * q_width() * t_,
                              context_.weights->dtype);
    float* k = q + q_width();
    const float* v = k + c.num_kv_heads * c.head_dim;
    for (int32_t h = 0; h < c.num_kv_heads; ++h) {
      RotateHead(k_norm, position, k + h * c.head_dim);
      context_.kv_layout.Store(kv + h * context_.kv_layout.head_bytes(), position % kKvBlockTokens,
                               k + h * c.head_dim, v + h * c.head_dim);
    }
  }
}

void ForwardPass::Attention(int32_t ticket) {
  const ModelConfig& c = config();
  const int32_t group = c.num_heads / c.num_kv_heads;
  const auto num_tiles = static_cast<int32_t>(tiles_.size());
  const Piece& tile = tiles_[ticket % num_tiles];
  const ForwardRow& row = batch_.rows[tile.row];
  // Query heads [head, last_head) of one KV head: all of its group, or 16 of a larger one.
  const int32_t heads_per_call = std::min(group, kMaxQueryRows);
  const int32_t calls_per_group = CeilDiv(group, kMaxQueryRows);
  const int32_t kv_head = ticket / num_tiles / calls_per_group;
  const int32_t head = kv_head * group + ticket / num_tiles % calls_per_group * heads_per_call;
  const int32_t last_head = std::min(head + heads_per_call, (kv_head + 1) * group);
  AttentionRow rows[kMaxQueryRows];
  size_t num_rows = 0;
  for (int32_t i = 0; i < tile.num_tokens; ++i) {
    const size_t token = tile.first_token + i;
    const int32_t position = row.begin + tile.first_token - row.first_token + i;
    for (int32_t h = head; h < last_head; ++h) {
      const size_t offset = (token * q_width() + size_t(h) * c.head_dim) * t_;
      rows[num_rows++] = {workspace_.q + offset, position + 1, workspace_.attn + offset};
    }
  }
  context_.kernels->Attention({
      .rows = {rows, num_rows},
      .block_table = row.block_table,
      .kv = context_.kv + context_.kv_layout.Offset(cursor_.layer, 0, kv_head),
      .layout = &context_.kv_layout,
      .scale = scale_,
  });
}

void ForwardPass::GateUp(int32_t ticket, int thread) {
  const ModelConfig& c = config();
  const int32_t padded = context_.weights->intermediate_padded();
  const ProductCut& cut = gate_up_cut_;
  const int32_t row = cut.row_begin(ticket);
  const int32_t col = cut.col_begin(ticket);
  const int32_t end = std::min(col + cut.cols, padded);
  const int32_t num_rows = std::min(cut.rows, batch_.num_tokens() - row);
  const int64_t ld = 2 * int64_t{padded};
  const int64_t scratch_rows = std::min(kMlpRowsPerTicket, limits_.max_tokens);
  float* out = workspace_.gate_up + thread * scratch_rows * ld;
  const std::vector<float>& bias = layer().gate_up_bias;
  GemmCall call = {
      .a = workspace_.h + size_t(row) * c.hidden_size * t_,
      .lda = c.hidden_size,
      .m = num_rows,
      .w = &layer().gate_up,
      .n_begin = col,
      .n_end = end,
      .bias = bias.empty() ? nullptr : bias.data(),
      .out = out,
      .ldo = ld,
  };
  context_.kernels->Gemm(call);
  call.n_begin += padded;
  call.n_end += padded;
  context_.kernels->Gemm(call);
  for (int64_t i = 0; i < num_rows; ++i) {
    const float* gate = out + i * ld + col;
    context_.kernels->SiluMul(gate, gate + padded, end - col,
                              workspace_.act + ((row + i) * padded + col) * t_,
                              context_.weights->dtype);
  }
}

}  // namespace skein
