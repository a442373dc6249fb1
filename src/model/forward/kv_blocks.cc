#include "model/forward/kv_blocks.h"

#include <algorithm>

namespace skein {

const std::byte* KvBlocks::Cache(int32_t kv_head) const {
  return pass_.context.kv + pass_.context.kv_layout.Offset(layer_, 0, kv_head);
}

std::byte* KvBlocks::Block(int32_t block, std::byte* own) const {
  const KvLayout& layout = pass_.context.kv_layout;
  if (block < layout.num_blocks) return pass_.context.kv + layout.Offset(layer_, block, 0);
  return own + (block - layout.num_blocks) * layout.block_bytes();
}

int32_t KvBlocks::BlockOf(const RowSpan& span) const {
  const int32_t position = pass_.layout.Position(span.row, span.first);
  return pass_.layout.Table(span.row)[position / kKvBlockTokens];
}

std::byte* KvBlocks::StoreBlock(const RowSpan& span) const {
  return Block(BlockOf(span), pass_.workspace.own_kv_out);
}

const std::byte* KvBlocks::LoadBlock(const RowSpan& span) const {
  return Block(BlockOf(span), pass_.workspace.own_kv);
}

void KvBlocks::ZeroFresh(int32_t first_token, int32_t end_token) const {
  const KvLayout& layout = pass_.context.kv_layout;
  const bool padded = layout.head_dim != layout.head_dim_padded();
  const auto spans = pass_.layout.block_spans();
  auto span = std::ranges::lower_bound(spans, first_token, {}, &RowSpan::first);
  for (; span != spans.end() && span->first < end_token; ++span) {
    const ForwardRow& row = pass_.batch.rows[span->row];
    // The block of a fork is also new.
    const bool forks = row.fork.num_tokens > 0 && span->first == row.first_token;
    const bool begins = pass_.layout.Position(span->row, span->first) % kKvBlockTokens == 0;
    if (!(begins || forks) || (span->count == kKvBlockTokens && !padded)) continue;
    std::byte* const kv = StoreBlock(*span);
    for (int32_t h = 0; h < layout.num_kv_heads; ++h) {
      std::fill_n(kv + h * layout.head_stride(), layout.head_bytes(), std::byte{0});
    }
  }
}

void KvBlocks::CopyFork(int32_t row) const {
  const KvLayout& layout = pass_.context.kv_layout;
  const ForwardRow& r = pass_.batch.rows[row];
  const int32_t own = pass_.layout.Table(row)[r.begin / kKvBlockTokens];
  const std::byte* from = Block(r.fork.from, pass_.workspace.own_kv);
  std::byte* to = Block(own, pass_.workspace.own_kv);
  for (int32_t head = 0; head < layout.num_kv_heads; ++head) {
    const size_t offset = head * layout.head_stride();
    layout.CopySlots(from + offset, to + offset, r.fork.num_tokens);
  }
}

}  // namespace skein
