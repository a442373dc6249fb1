// Rotation, the KV cache and attention of ForwardPass.

#include <algorithm>
#include <cstring>
#include <numeric>

#include "model/forward_pass.h"

namespace skein {

namespace {

constexpr size_t kCollectBytes = size_t{1} << 20;  // of a ticket

int32_t CollectTickets(size_t bytes) {
  return static_cast<int32_t>((bytes + kCollectBytes - 1) / kCollectBytes);
}

void CopyPart(int32_t ticket, const void* from, void* to, size_t bytes) {
  const size_t begin = ticket * kCollectBytes;
  std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
              std::min(kCollectBytes, bytes - begin));
}

}  // namespace

bool ForwardPass::ShareFirstStep(int32_t a, int32_t b) const {
  constexpr size_t kBlocks = kKeysPerAmxStep / kKvBlockTokens;
  return batch_.rows[a].begin + 1 >= kKeysPerAmxStep &&
         batch_.rows[b].begin + 1 >= kKeysPerAmxStep &&
         std::ranges::equal(Table(a).first(kBlocks), Table(b).first(kBlocks));
}

// Work grows with the keys, and a ticket is to stay at about a millisecond: beyond
// kKeysOfFullTile keys a tile has fewer rows, down to what fills the matrix unit.
int32_t ForwardPass::TileTokens(int32_t num_keys) const {
  constexpr int32_t kKeysOfFullTile = 6144;
  constexpr int32_t kMinRows = 32;
  int32_t rows = kMaxQueryRows;
  while (rows > kMinRows && int64_t{rows} * num_keys > int64_t{kMaxQueryRows} * kKeysOfFullTile) {
    rows /= 2;
  }
  return std::max(rows / group(), 1);
}

// Few rows on many threads: what a tile of all of them would save in reading is less than what the
// threads would lose that find no ticket. Not below what fills a tile register.
int32_t ForwardPass::JoinedTokens() const {
  constexpr int32_t kMinRows = 16;
  constexpr int32_t kTicketsPerThread = 2;
  const int32_t num_rows = batch_.num_tokens() * group();
  const int32_t num_tickets = kTicketsPerThread * context_.team->num_threads();
  int32_t rows = kMaxQueryRows;
  while (rows > kMinRows && CeilDiv(num_rows, rows) * config().num_kv_heads < num_tickets) {
    rows /= 2;
  }
  return std::max(rows / group(), 1);
}

// Rows that share leading blocks come together in tiles, so that one walk can read those blocks for
// all of them (AttentionCall); the others get tiles of their own. Costs one sort of the rows by
// their block tables.
void ForwardPass::CutTiles() {
  const auto before = [this](int32_t a, int32_t b) {
    const auto x = Table(a), y = Table(b);
    const size_t both = std::min(x.size(), y.size());
    const int order = std::memcmp(x.data(), y.data(), both * sizeof(int32_t));
    return order != 0 ? order < 0 : x.size() != y.size() ? x.size() < y.size() : a < b;
  };
  sorted_rows_.resize(batch_.rows.size());
  std::iota(sorted_rows_.begin(), sorted_rows_.end(), 0);
  std::sort(sorted_rows_.begin(), sorted_rows_.end(), before);
  tiles_.clear();
  tile_pieces_.clear();
  int32_t last_row = -1;
  const int32_t joined_tokens = JoinedTokens();
  for (const int32_t r : sorted_rows_) {
    const ForwardRow& row = batch_.rows[r];
    const int32_t most_joined = std::min(TileTokens(row.begin + row.num_tokens), joined_tokens);
    bool joins = context_.share_attention && last_row >= 0 &&
                 tiles_.back().num_tokens + row.num_tokens <= most_joined &&
                 ShareFirstStep(last_row, r);
    for (int32_t i = 0; i < row.num_tokens; joins = false) {
      const int32_t num_left = row.num_tokens - i;
      const int32_t most = TileTokens(row.begin + i + std::min(num_left, kMaxQueryRows / group()));
      const int32_t count = std::min(most, num_left);
      if (!joins) tiles_.push_back({static_cast<int32_t>(tile_pieces_.size()), 0, 0});
      tile_pieces_.push_back({r, row.first_token + i, count});
      ++tiles_.back().num_pieces;
      tiles_.back().num_tokens += count;
      i += count;
    }
    last_row = r;
  }
}

std::byte* ForwardPass::KvBlock(int32_t block, std::byte* own) const {
  const KvLayout& layout = context_.kv_layout;
  if (block < layout.num_blocks) return context_.kv + layout.Offset(cursor_.layer, block, 0);
  return own + (block - layout.num_blocks) * layout.block_bytes();
}

void ForwardPass::RotateAndStore(int32_t ticket) {
  const ModelConfig& c = config();
  const KvLayout& layout = context_.kv_layout;
  const Piece& piece = blocks_[chunk_block_[cursor_.row_chunk] + ticket];
  const ForwardRow& row = batch_.rows[piece.row];
  const int32_t first_position = row.begin + piece.first_token - row.first_token;
  const int32_t block = Table(piece.row)[first_position / kKvBlockTokens];
  std::byte* kv = KvBlock(block, workspace_.own_kv_out);  // the first head's
  // A block that changed hands still holds its former owner's keys and values. Zero them: the
  // attention may read, though never see, what lies behind the last key. A fork's block too is new.
  const bool forks = row.fork.num_tokens > 0 && piece.first_token == row.first_token;
  if (first_position % kKvBlockTokens == 0 || forks) {
    for (int32_t h = 0; h < c.num_kv_heads; ++h) {
      std::fill_n(kv + h * layout.head_stride(), layout.head_bytes(), std::byte{0});
    }
  }
  RotateCall call = {.eps = config().rms_norm_eps, .head_dim = c.head_dim, .dtype = layout.dtype};
  for (int32_t i = 0; i < piece.num_tokens; ++i) {
    const size_t token = piece.first_token + i;
    const int32_t slot = (first_position + i) % kKvBlockTokens;
    if (context_.rope != nullptr) {
      call.cos = context_.rope->cos(first_position + i);
      call.sin = context_.rope->sin(first_position + i);
    }
    call.x = workspace_.qkv + (token - chunk_begin_) * qkv_width();
    call.num_heads = c.num_heads;
    call.norm = layer().q_norm.empty() ? nullptr : layer().q_norm.data();
    call.out = workspace_.q_out + token * q_width() * t_;
    context_.kernels->Rotate(call);
    call.x += q_width();
    call.num_heads = 1;
    call.norm = layer().k_norm.empty() ? nullptr : layer().k_norm.data();
    for (int32_t h = 0; h < c.num_kv_heads; ++h, call.x += c.head_dim) {
      alignas(64) std::byte k[kMaxHeadDim * sizeof(float)], v[kMaxHeadDim * sizeof(float)];
      call.out = k;
      context_.kernels->Rotate(call);
      context_.kernels->Convert(call.x + c.num_kv_heads * c.head_dim, c.head_dim, v, layout.dtype);
      layout.Store(kv + h * layout.head_stride(), slot, k, v);
    }
  }
}

void ForwardPass::Fork(int32_t ticket) {
  const KvLayout& layout = context_.kv_layout;
  const int32_t r = forks_[ticket];
  const ForwardFork& fork = batch_.rows[r].fork;
  const std::byte* from = KvBlock(fork.from, workspace_.own_kv);
  std::byte* to = KvBlock(Table(r)[batch_.rows[r].begin / kKvBlockTokens], workspace_.own_kv);
  for (int32_t head = 0; head < layout.num_kv_heads; ++head) {
    const size_t offset = head * layout.head_stride();
    layout.CopySlots(from + offset, to + offset, fork.num_tokens);
  }
}

int32_t ForwardPass::NumCollectTickets() const {
  if (limits_.chunk_outputs != ChunkOutputs::kCollected) return 0;
  const size_t tokens = batch_.num_tokens();
  if (cursor_.op == Operator::kCollectX) {
    return CollectTickets(tokens * config().hidden_size * sizeof(float));
  }
  return CollectTickets(tokens * q_width() * t_) +
         CollectTickets(num_own_blocks_ * context_.kv_layout.block_bytes());
}

void ForwardPass::CollectQkv(int32_t ticket) {
  const size_t q_bytes = size_t(batch_.num_tokens()) * q_width() * t_;
  const int32_t kv_ticket = ticket - CollectTickets(q_bytes);
  if (kv_ticket < 0) return CopyPart(ticket, workspace_.q_out, workspace_.q, q_bytes);
  CopyPart(kv_ticket, workspace_.own_kv_out, workspace_.own_kv,
           num_own_blocks_ * context_.kv_layout.block_bytes());
}

// To where q was.
void ForwardPass::CollectX(int32_t ticket) {
  CopyPart(ticket, workspace_.x_out, workspace_.q,
           size_t(batch_.num_tokens()) * config().hidden_size * sizeof(float));
}

void ForwardPass::Attention(int32_t ticket) {
  const ModelConfig& c = config();
  const auto num_tiles = static_cast<int32_t>(tiles_.size());
  const Tile& tile = tiles_[ticket % num_tiles];
  // Query heads [head, last_head) of one KV head: all of its group, or kMaxQueryRows of a larger.
  const int32_t heads_per_call = std::min(group(), kMaxQueryRows);
  const int32_t calls_per_group = CeilDiv(group(), kMaxQueryRows);
  const int32_t kv_head = ticket / num_tiles / calls_per_group;
  const int32_t head = kv_head * group() + ticket / num_tiles % calls_per_group * heads_per_call;
  const int32_t last_head = std::min(head + heads_per_call, (kv_head + 1) * group());
  AttentionRow rows[kMaxQueryRows];
  size_t num_rows = 0;
  for (int32_t p = 0; p < tile.num_pieces; ++p) {
    const Piece& piece = tile_pieces_[tile.first_piece + p];
    const ForwardRow& row = batch_.rows[piece.row];
    const std::span<const int32_t> table = Table(piece.row);
    for (int32_t i = 0; i < piece.num_tokens; ++i) {
      const size_t token = piece.first_token + i;
      const int32_t position = row.begin + piece.first_token - row.first_token + i;
      const int32_t num_keys = c.is_encoder() ? row.num_tokens : position + 1;
      for (int32_t h = head; h < last_head; ++h) {
        const size_t offset = (token * q_width() + size_t(h) * c.head_dim) * t_;
        rows[num_rows++] = {workspace_.q + offset, workspace_.attn + offset, num_keys,
                            static_cast<int32_t>(table.size()), table.data()};
      }
    }
  }
  context_.kernels->Attention({
      .rows = {rows, num_rows},
      .kv = context_.kv + context_.kv_layout.Offset(cursor_.layer, 0, kv_head),
      .own_kv = workspace_.own_kv + kv_head * context_.kv_layout.head_bytes(),
      .layout = &context_.kv_layout,
      .scale = scale_,
  });
}

}  // namespace skein
