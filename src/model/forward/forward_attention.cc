// Rotation, the KV cache and attention of ForwardPass.

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "model/forward/forward_pass.h"

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
  const int32_t keys = KeysPerStep(context_.kernels->isa(), context_.kv_layout.dtype);
  const size_t blocks = keys / kKvBlockTokens;
  return batch_.rows[a].begin + 1 >= keys && batch_.rows[b].begin + 1 >= keys &&
         std::ranges::equal(Table(a).first(blocks), Table(b).first(blocks));
}

// Few rows on many threads: what a tile of all of them would save in reading is less than what the
// threads would lose that find no ticket. Not below what fills a tile register.
int32_t ForwardPass::JoinedTokens() const {
  constexpr int32_t kMinRows = 16;
  constexpr int32_t kTicketsPerThread = 2;
  const int32_t num_rows = num_places() * group();
  const int32_t num_tickets = kTicketsPerThread * context_.team->num_threads();
  int32_t rows = kMaxQueryRows;
  while (rows > kMinRows && CeilDiv(num_rows, rows) * config().num_kv_heads < num_tickets) {
    rows /= 2;
  }
  return std::max(rows / group(), 1);
}

// Rows that share leading blocks come together in tiles, so that one walk can read those blocks for
// all of them (AttentionCall); the others get tiles of their own. Costs one sort of the rows by
// their block tables. Where only wanted tokens go on, a tile may skip positions of its row.
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
  const int32_t full_tile = std::max(kMaxQueryRows / group(), 1);
  for (const int32_t r : sorted_rows_) {
    const ForwardRow& row = batch_.rows[r];
    const int32_t first = PlaceOf(row.first_token);
    const int32_t end = PlaceOf(row.first_token + row.num_tokens);
    if (first == end) continue;
    const auto keys_at = [&](int32_t place) {
      return row.begin + TokenAt(place) - row.first_token + 1;
    };
    const int32_t most_joined =
        std::min(AttentionTileTokens(keys_at(end - 1), group()), joined_tokens);
    bool joins = context_.share_attention && last_row >= 0 &&
                 tiles_.back().num_tokens + end - first <= most_joined &&
                 ShareFirstStep(last_row, r);
    for (int32_t place = first; place < end; joins = false) {
      const int32_t most =
          AttentionTileTokens(keys_at(std::min(place + full_tile, end) - 1), group());
      const int32_t count = std::min(most, end - place);
      if (!joins) tiles_.push_back({static_cast<int32_t>(tile_pieces_.size()), 0, 0});
      tile_pieces_.push_back({r, place, count});
      ++tiles_.back().num_pieces;
      tiles_.back().num_tokens += count;
      place += count;
    }
    last_row = r;
  }
}

std::byte* ForwardPass::KvBlock(int32_t block, std::byte* own) const {
  const KvLayout& layout = context_.kv_layout;
  if (block < layout.num_blocks) return context_.kv + layout.Offset(cursor_.layer, block, 0);
  return own + (block - layout.num_blocks) * layout.block_bytes();
}

void ForwardPass::AttnNorm(int32_t ticket) {
  Norm(ticket, layer().attn_norm, layer().attn_norm_bias, workspace_.x);
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, chunk_tokens_);
  ZeroBlocks(chunk_begin_ + begin, chunk_begin_ + end);
}

int32_t ForwardPass::Position(const Piece& piece, int32_t token) const {
  const ForwardRow& row = batch_.rows[piece.row];
  return row.begin + token - row.first_token;
}

std::byte* ForwardPass::StoreBlock(const Piece& piece) const {
  const int32_t position = Position(piece, piece.first_token);
  return KvBlock(Table(piece.row)[position / kKvBlockTokens], workspace_.own_kv_out);
}

// A block that changed hands still holds its former owner's keys and values. Zero them: the
// attention may read, though never see, what lies behind the last key. A fork's block too is new.
// A block that is stored as a whole needs no zeros, if all there is of it is stored.
void ForwardPass::ZeroBlocks(int32_t first_token, int32_t end_token) {
  const KvLayout& layout = context_.kv_layout;
  const bool padded = layout.head_dim != layout.head_dim_padded();
  auto piece = std::ranges::lower_bound(blocks_, first_token, {}, &Piece::first_token);
  for (; piece != blocks_.end() && piece->first_token < end_token; ++piece) {
    const ForwardRow& row = batch_.rows[piece->row];
    const bool forks = row.fork.num_tokens > 0 && piece->first_token == row.first_token;
    const bool begins = Position(*piece, piece->first_token) % kKvBlockTokens == 0;
    if (!(begins || forks) || (piece->num_tokens == kKvBlockTokens && !padded)) continue;
    std::byte* const kv = StoreBlock(*piece);
    for (int32_t h = 0; h < layout.num_kv_heads; ++h) {
      std::fill_n(kv + h * layout.head_stride(), layout.head_bytes(), std::byte{0});
    }
  }
}

// The sums stay in this thread's cache until their heads are stored.
void ForwardPass::QkvProj(int32_t ticket) {
  constexpr int32_t kSums = 48 << 10;  // few, since products have more on the same stack
  constexpr int32_t kRowUnit = 32;
  alignas(64) float sums[kSums];
  const ProductCut& cut = qkv_cut_;
  const QkvPart all = {
      cut.row_begin(ticket), std::min(cut.row_begin(ticket) + cut.rows, chunk_tokens_),
      cut.col_begin(ticket), std::min(cut.col_begin(ticket) + cut.cols, qkv_width())};
  // Of whole heads and panels. Rows are a line longer than that, so that they do not fall on the
  // same lines of the cache.
  const int32_t unit = std::lcm(config().head_dim, kPanelCols);
  static_assert(kSums / (kMaxHeadDim * kPanelCols / 2) >= kRowTileRows);  // the widest unit
  const int32_t row_unit = unit + kPanelCols > kSums / kRowUnit ? kRowTileRows : kRowUnit;
  const int32_t rows =
      std::min(all.row_end - all.row_begin, kSums / (unit + kPanelCols) / row_unit * row_unit);
  const int32_t cols = (kSums / rows - kPanelCols) / unit * unit;
  const std::vector<float>& bias = layer().qkv_bias;
  for (int32_t row = all.row_begin; row < all.row_end; row += rows) {
    const GemmRows from =
        RowsFor(layer().qkv, {workspace_.h, config().hidden_size, row_tiles_}, row);
    for (int32_t col = all.col_begin; col < all.col_end; col += cols) {
      const QkvPart part = {row, std::min(row + rows, all.row_end), col,
                            std::min(col + cols, all.col_end)};
      const int64_t ld = (CeilDiv(part.col_end - col, kPanelCols) + 1) * kPanelCols;
      context_.kernels->Gemm({
          .a = from.a,
          .lda = from.lda,
          .a_scales = from.scales,
          .m = part.row_end - row,
          .w = &layer().qkv,
          .n_begin = col,
          .n_end = part.col_end,
          .bias = bias.empty() ? nullptr : bias.data(),
          .out = sums,
          .ldo = ld,
          .out_begin = col,
          .a_tiles = from.tiles,
      });
      StoreHeads(part, sums, ld);
    }
  }
}

void ForwardPass::StoreHeads(const QkvPart& part, const float* x, int64_t ld) {
  const int32_t first = chunk_begin_ + part.row_begin;
  const int32_t end = chunk_begin_ + part.row_end;
  auto piece = std::ranges::upper_bound(blocks_, first, {}, &Piece::first_token) - 1;
  for (int32_t token = first; token < end; ++token, x += ld) {
    if (token == piece->first_token + piece->num_tokens) ++piece;
    StoreTokenHeads(*piece, token, part, x);
  }
}

void ForwardPass::StoreTokenHeads(const Piece& piece, int32_t token, const QkvPart& part,
                                  const float* x) {
  const ModelConfig& c = config();
  const KvLayout& layout = context_.kv_layout;
  const int32_t position = Position(piece, token);
  const int32_t slot = position % kKvBlockTokens;
  const auto weight = [](const std::vector<float>& w) { return w.empty() ? nullptr : w.data(); };
  RotateCall call = {.eps = c.rms_norm_eps, .head_dim = c.head_dim, .dtype = layout.dtype};
  if (context_.rope != nullptr) {
    call.cos = context_.rope->cos(position);
    call.sin = context_.rope->sin(position);
  }
  if (part.col_begin < q_width()) {
    call.x = x;
    call.norm = weight(layer().q_norm);
    call.num_heads = (std::min(part.col_end, q_width()) - part.col_begin) / c.head_dim;
    call.out = At(workspace_.q_out, token, part.col_begin, q_width());
    call.piece_stride = piece_stride();
    context_.kernels->Rotate(call);
  }
  call.piece_stride = kRowPiece;
  call.norm = weight(layer().k_norm);
  call.num_heads = 1;
  std::byte* const kv = StoreBlock(piece);
  const int32_t kv_begin = std::max(part.col_begin, q_width());
  for (int32_t col = kv_begin; col < part.col_end; col += c.head_dim) {
    alignas(64) std::byte rounded[kMaxHeadDim * sizeof(float)];
    const int32_t head = (col - q_width()) / c.head_dim;  // of k, then of v
    call.x = x + (col - part.col_begin);
    if (head < c.num_kv_heads) {
      call.out = rounded;
      context_.kernels->Rotate(call);
      layout.StoreK(kv + head * layout.head_stride(), slot, rounded);
    } else {
      context_.kernels->Convert(call.x, c.head_dim, rounded, layout.dtype);
      layout.StoreV(kv + (head - c.num_kv_heads) * layout.head_stride(), slot, rounded);
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

// In whole tiles, if it lies in those.
size_t ForwardPass::CollectedQBytes() const {
  return size_t(CeilDiv(batch_.num_tokens(), kRowTileRows)) * kRowTileRows * q_width() * t_;
}

int32_t ForwardPass::NumCollectTickets() const {
  if (limits_.chunk_outputs != ChunkOutputs::kCollected) return 0;
  if (cursor_.op == Operator::kCollectX) {
    return CollectTickets(size_t(num_places()) * config().hidden_size * sizeof(float));
  }
  return CollectTickets(CollectedQBytes()) +
         CollectTickets(num_own_blocks_ * context_.kv_layout.block_bytes());
}

void ForwardPass::CollectQkv(int32_t ticket) {
  const size_t q_bytes = CollectedQBytes();
  const int32_t kv_ticket = ticket - CollectTickets(q_bytes);
  if (kv_ticket < 0) return CopyPart(ticket, workspace_.q_out, workspace_.q, q_bytes);
  CopyPart(kv_ticket, workspace_.own_kv_out, workspace_.own_kv,
           num_own_blocks_ * context_.kv_layout.block_bytes());
}

// To where q was.
void ForwardPass::CollectX(int32_t ticket) {
  CopyPart(ticket, workspace_.x_out, workspace_.q,
           size_t(num_places()) * config().hidden_size * sizeof(float));
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
      const int32_t place = piece.first_token + i;
      const int32_t position = Position(piece, TokenAt(place));
      const int32_t num_keys = c.is_encoder() ? row.num_tokens : position + 1;
      for (int32_t h = head; h < last_head; ++h) {
        const int64_t column = int64_t{h} * c.head_dim;
        rows[num_rows++] = {At(workspace_.q, place, column, q_width()),
                            At(workspace_.attn, place, column, q_width()), num_keys,
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
      .piece_stride = piece_stride(),
  });
}

}  // namespace skein
