// Rotation, the KV cache and attention of ForwardPass.

#include <algorithm>

#include "model/forward_pass.h"

namespace skein {

void ForwardPass::RotateHead(const float* norm, int32_t position, float* head) const {
  const int32_t d = config().head_dim;
  if (norm != nullptr) {
    context_.kernels->RmsNorm(head, norm, config().rms_norm_eps, d, head, DType::kF32);
  }
  if (context_.rope == nullptr) return;
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
  // attention may read, though never see, what lies behind the last key. A fork's block too is new.
  const bool forks = row.fork.num_tokens > 0 && piece.first_token == row.first_token;
  if (first_position % kKvBlockTokens == 0 || forks) {
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

void ForwardPass::Fork(int32_t ticket) {
  const KvLayout& layout = context_.kv_layout;
  const ForwardFork& fork = batch_.rows[forks_[ticket]].fork;
  for (int32_t head = 0; head < layout.num_kv_heads; ++head) {
    layout.CopySlots(context_.kv + layout.Offset(cursor_.layer, fork.from, head),
                     context_.kv + layout.Offset(cursor_.layer, fork.to, head), fork.num_tokens);
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
    const int32_t num_keys = c.is_encoder() ? row.num_tokens : position + 1;
    for (int32_t h = head; h < last_head; ++h) {
      const size_t offset = (token * q_width() + size_t(h) * c.head_dim) * t_;
      rows[num_rows++] = {workspace_.q + offset, num_keys, workspace_.attn + offset};
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

}  // namespace skein
