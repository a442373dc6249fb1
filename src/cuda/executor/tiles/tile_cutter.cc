#include "cuda/executor/tiles/tile_cutter.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/ceil_div.h"
#include "cuda/kernels/launches.h"

namespace skein::cuda {
namespace {

constexpr int64_t kPrefixBytesMax = int64_t{64} << 20;
constexpr int32_t kTileWords = sizeof(AttentionTile) / sizeof(int32_t);
constexpr int32_t kSharedWords = sizeof(SharedPrefix) / sizeof(int32_t);
static_assert(kTileWords == 6 && kSharedWords == 2);

bool HasGlobalAttention(const ModelConfig& config) {
  for (int32_t layer = 0; layer < config.num_layers; ++layer) {
    if (!config.IsLinear(layer) && !config.IsLocal(layer)) return true;
  }
  return false;
}

}  // namespace

int64_t PrefixPartialBytes(const ModelConfig& config, int32_t num_kv_heads, int64_t num_positions,
                           int32_t chunk_tokens) {
  if (config.bidirectional || !HasGlobalAttention(config)) return 0;
  const AttentionArgs args = {
      .num_tiles = chunk_tokens,
      .tile_rows = kAttentionRows,
      .num_segments = static_cast<int32_t>(CeilDiv(num_positions, int64_t{kKeysPerSegment})),
      .num_kv_heads = num_kv_heads,
      .head_dim = config.head_dim};
  return std::min(kPrefixBytesMax, PartialBytes(args));
}

TileCutter::TileCutter(const ForwardContext& model, int32_t chunk_tokens)
    : config_(model.weights->config),
      group_size_(config_.num_heads / config_.num_kv_heads),
      kv_layout_(model.kv_layout),
      prefix_bytes_(model.share_attention && model.rope != nullptr
                        ? PrefixPartialBytes(config_, kv_layout_.num_kv_heads,
                                             model.rope->num_positions(), chunk_tokens)
                        : 0) {}

TileWords TileCutter::Cut(const ForwardBatch& batch, const BatchLayout& layout,
                          const BatchExtras& extras, std::span<const RowSpan> runs,
                          int32_t first_token, int32_t num_padded, std::vector<int32_t>* words) {
  TileWords tiles = {.begin = words->size(), .rows = RowsOf(extras, runs, num_padded)};
  tables_.clear();
  for (int32_t index = 0, table = 0; const RowSpan& run : runs) {
    for (; index < run.row; ++index) table += static_cast<int32_t>(layout.Table(index).size());
    tables_.push_back(table);
  }
  FindShared(layout, extras, runs, num_padded, &tiles);
  shared_tiles_.clear();
  if (tiles.rows > kAttentionRows) {
    AddTiles(batch, layout, runs, first_token, true, &tiles, words);
    tiles.num_wide = tiles.count;
  }
  AddTiles(batch, layout, runs, first_token, false, &tiles, words);
  if (num_padded > 0) Pad(num_padded, &tiles, words);
  AddPrefixes(runs, first_token, num_padded, &tiles, words);
  return tiles;
}

int32_t TileCutter::WidestRows(const BatchExtras& extras) const {
  const int32_t widest = WideRows(kv_layout_.dtype, kv_layout_.head_dim_padded());
  // The kernel with tiles of eight warps knows neither hidden keys nor terms nor caps.
  const bool any_width = extras.visible_words > 0 || extras.relative_rows > 0 ||
                         config_.decoder.score_cap > 0 ||
                         config_.encoder.relative_bias.num_buckets > 0;
  return any_width ? std::min(widest, kFourWarpRows) : widest;
}

int32_t TileCutter::RowsOf(const BatchExtras& extras, std::span<const RowSpan> runs,
                           int32_t num_padded) const {
  int32_t most_rows = 1;
  const int64_t surplus = std::max<int64_t>(0, num_padded - std::ssize(runs));
  int64_t narrow_tiles = surplus * CeilDiv(group_size_, kAttentionRows);
  for (const RowSpan& run : runs) {
    most_rows = std::max(most_rows, run.count * group_size_);
    narrow_tiles += CeilDiv(run.count * group_size_, kAttentionRows);
  }
  return AttentionTileRows(WidestRows(extras), most_rows, narrow_tiles * kv_layout_.num_kv_heads);
}

void TileCutter::AddTiles(const ForwardBatch& batch, const BatchLayout& layout,
                          std::span<const RowSpan> runs, int32_t first_token, bool wide,
                          TileWords* tiles, std::vector<int32_t>* words) {
  for (size_t i = 0; i < runs.size(); ++i) {
    const RowSpan& run = runs[i];
    if (IsWide(*tiles, run) != wide) continue;
    const ForwardRow& row = batch.rows[run.row];
    const int32_t begin = layout.Position(run.row, run.first);
    const int32_t num_keys = config_.bidirectional ? std::min(row.num_tokens, row.num_attended)
                                                   : row.begin + row.num_tokens;
    for (int32_t first = 0; first < run.count * group_size_; first += tiles->rows) {
      words->insert(words->end(),
                    {run.first - first_token, run.count, begin, tables_[i], first, num_keys});
      shared_tiles_.push_back(shared_[i]);
      ++tiles->count;
    }
    const int32_t seen = config_.bidirectional ? num_keys : begin + run.count;
    tiles->num_segments = std::max(tiles->num_segments, CeilDiv(seen, kKeysPerSegment));
  }
}

// A graph serves all batches of its padded size. So the numbers of its tiles follow from that size.
void TileCutter::Pad(int32_t num_padded, TileWords* tiles, std::vector<int32_t>* words) {
  const int32_t count = num_padded * CeilDiv(group_size_, tiles->rows);
  words->resize(words->size() + (count - tiles->count) * kTileWords);
  shared_tiles_.resize(count);
  tiles->count = count;
  if (tiles->num_wide > 0) tiles->num_wide = count;  // all tokens have as many rows
  tiles->num_segments =
      static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(tiles->num_segments)));
}

void TileCutter::FindShared(const BatchLayout& layout, const BatchExtras& extras,
                            std::span<const RowSpan> runs, int32_t num_padded, TileWords* tiles) {
  shared_.assign(runs.size(), {});
  if (prefix_bytes_ == 0 || runs.size() < 2 || extras.visible_words > 0) return;
  int32_t num_rows = 0;
  prefix_runs_.clear();
  for (const RowSpan& run : runs) {
    num_rows += run.count * group_size_;
    prefix_runs_.push_back({layout.Table(run.row), layout.Position(run.row, run.first),
                            run.count * group_size_,
                            IsWide(*tiles, run) ? tiles->rows : kAttentionRows});
  }
  const int32_t heads = kv_layout_.num_kv_heads;
  num_rows = std::max(num_rows, num_padded * group_size_);
  tiles->prefix_rows = AttentionTileRows(WidestRows(extras), num_rows,
                                         int64_t{CeilDiv(num_rows, kAttentionRows)} * heads);
  finder_.Assign(prefix_runs_,
                 {heads, tiles->prefix_rows,
                  static_cast<int32_t>(kv_layout_.head_bytes()) * kKeysPerStep / kKvBlockTokens});
  if (finder_.groups().empty() || (!always_shares_ && finder_.SavedUs() <= 0)) return;
  for (const PrefixGroup& group : finder_.groups()) {
    int32_t first_row = tiles->num_prefixes * tiles->prefix_rows, group_rows = 0;
    for (const int32_t run : finder_.runs().subspan(group.first, group.count)) {
      shared_[run] = {group.num_keys, first_row + group_rows};
      group_rows += prefix_runs_[run].num_rows;
    }
    tiles->num_prefixes += CeilDiv(group_rows, tiles->prefix_rows);
  }
}

// Adds the walks of shared prefixes, unless their partial sums need too much memory.
void TileCutter::AddPrefixes(std::span<const RowSpan> runs, int32_t first_token, int32_t num_padded,
                             TileWords* tiles, std::vector<int32_t>* words) {
  if (tiles->num_prefixes == 0) return;
  const int32_t num_prefixes = tiles->num_prefixes;
  if (num_padded > 0) {
    tiles->num_prefixes =
        static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(tiles->num_prefixes)));
  }
  const AttentionArgs args = {.num_tiles = tiles->num_prefixes,
                              .tile_rows = tiles->prefix_rows,
                              .num_segments = tiles->num_segments,
                              .num_kv_heads = kv_layout_.num_kv_heads,
                              .head_dim = config_.head_dim};
  if (PartialBytes(args) > prefix_bytes_ || tiles->num_prefixes > kMaxAttentionTiles) {
    tiles->num_prefixes = 0;
    return;
  }
  tiles->prefixes = words->size();
  int32_t num_tokens = 0;
  for (const PrefixGroup& group : finder_.groups()) {
    const auto members = finder_.runs().subspan(group.first, group.count);
    int32_t of_group = 0;
    for (const int32_t run : members) of_group += runs[run].count;
    // All tokens lie behind the prefix, so that each sees all of its keys.
    for (int32_t row = 0; row < of_group * group_size_; row += tiles->prefix_rows) {
      words->insert(words->end(), {num_tokens, of_group, group.num_keys, tables_[members.front()],
                                   row, group.num_keys});
    }
    num_tokens += of_group;
  }
  words->resize(words->size() + (tiles->num_prefixes - num_prefixes) * kTileWords);
  tiles->prefix_tokens = words->size();
  for (const PrefixGroup& group : finder_.groups()) {
    for (const int32_t run : finder_.runs().subspan(group.first, group.count)) {
      for (int32_t i = 0; i < runs[run].count; ++i)
        words->push_back(runs[run].first - first_token + i);
    }
  }
  words->resize(words->size() + std::max(0, num_padded - num_tokens));
  tiles->shared = words->size();
  words->resize(words->size() + shared_tiles_.size() * kSharedWords);
  std::memcpy(words->data() + tiles->shared, shared_tiles_.data(),
              shared_tiles_.size() * sizeof(SharedPrefix));
}

}  // namespace skein::cuda
