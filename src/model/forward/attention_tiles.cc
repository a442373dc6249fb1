#include "model/forward/attention_tiles.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "model/forward/product_cut.h"

namespace skein {

AttentionTiles::AttentionTiles(const ForwardContext& context, const ForwardLimits& limits,
                               const ForwardBatch& batch, const BatchLayout& layout, int32_t window)
    : context_(context), batch_(batch), layout_(layout), window_(window) {
  tiles_.reserve(limits.max_tokens);
  spans_.reserve(limits.max_tokens);
  sorted_rows_.reserve(limits.max_tokens);
}

void AttentionTiles::Update() {
  if (version_ == layout_.version()) return;
  version_ = layout_.version();
  SortRows();
  tiles_.clear();
  spans_.clear();
  const int32_t joined_tokens = JoinedTokens();
  int32_t last_row = -1;
  for (const int32_t row : sorted_rows_) {
    const size_t num_spans = spans_.size();
    AddRow(row, last_row, joined_tokens);
    if (spans_.size() > num_spans) last_row = row;
  }
}

void AttentionTiles::SortRows() {
  const auto before = [this](int32_t a, int32_t b) {
    const auto x = layout_.Table(a), y = layout_.Table(b);
    const size_t both = std::min(x.size(), y.size());
    const int order = std::memcmp(x.data(), y.data(), both * sizeof(int32_t));
    return order != 0 ? order < 0 : x.size() != y.size() ? x.size() < y.size() : a < b;
  };
  sorted_rows_.resize(batch_.rows.size());
  std::iota(sorted_rows_.begin(), sorted_rows_.end(), 0);
  std::sort(sorted_rows_.begin(), sorted_rows_.end(), before);
}

// Adds the active tokens of row `r`. They join the tile of `last_row` (-1: there is none) if all of
// them fit there and both rows begin with the same step of keys. Otherwise the row gets its own
// tiles.
void AttentionTiles::AddRow(int32_t r, int32_t last_row, int32_t joined_tokens) {
  const ForwardRow& row = batch_.rows[r];
  const int32_t first = layout_.ActiveIndex(row.first_token);
  const int32_t end = layout_.ActiveIndex(row.first_token + row.num_tokens);
  if (first == end) return;
  const int32_t most_joined =
      std::min(AttentionTileTokens(PositionOf(r, end - 1) + 1, group()), joined_tokens);
  bool joins = context_.share_attention && window_ == 0 && last_row >= 0 &&
               tiles_.back().num_tokens + end - first <= most_joined && ShareFirstStep(last_row, r);
  for (int32_t active = first; active < end; joins = false) {
    const int32_t count = TokensOfTile(r, active, end - active);
    if (!joins) tiles_.push_back({static_cast<int32_t>(spans_.size()), 0, 0});
    spans_.push_back({r, active, count});
    ++tiles_.back().num_spans;
    tiles_.back().num_tokens += count;
    active += count;
  }
}

int32_t AttentionTiles::TokensOfTile(int32_t row, int32_t active, int32_t count) const {
  count = std::min(count, std::max(kMaxQueryRows / group(), 1));
  if (window_ == 0) {
    return std::min(count, AttentionTileTokens(PositionOf(row, active + count - 1) + 1, group()));
  }
  // A tile may always span as many positions as it has tokens, however small the window is.
  const int32_t reach = std::max(window_, kMaxQueryRows);
  const int32_t first = PositionOf(row, active);
  while (PositionOf(row, active + count - 1) - first > reach) --count;
  const int32_t num_keys = window_ + PositionOf(row, active + count - 1) - first;
  return std::min(count, AttentionTileTokens(num_keys, group()));
}

// Whether the attention of both rows starts with a step over the same blocks.
bool AttentionTiles::ShareFirstStep(int32_t a, int32_t b) const {
  const int32_t keys = KeysPerStep(context_.kernels->isa(), context_.kv_layout.dtype);
  const size_t blocks = keys / kKvBlockTokens;
  return batch_.rows[a].begin + 1 >= keys && batch_.rows[b].begin + 1 >= keys &&
         std::ranges::equal(layout_.Table(a).first(blocks), layout_.Table(b).first(blocks));
}

int32_t AttentionTiles::group() const {
  const ModelConfig& config = context_.weights->config;
  return config.num_heads / config.num_kv_heads;
}

// The most tokens of a tile with several rows. With few rows and many threads, one tile of all rows
// would leave threads without a ticket. That costs more than the tile saves in reading. A tile
// never gets fewer rows than a tile register has.
int32_t AttentionTiles::JoinedTokens() const {
  constexpr int32_t kMinRows = 16;
  constexpr int32_t kTicketsPerThread = 2;
  const int32_t num_kv_heads = context_.weights->config.num_kv_heads;
  const int32_t num_rows = layout_.num_active() * group();
  const int32_t num_tickets = kTicketsPerThread * context_.team->num_threads();
  int32_t rows = kMaxQueryRows;
  while (rows > kMinRows && CeilDiv(num_rows, rows) * num_kv_heads < num_tickets) rows /= 2;
  return std::max(rows / group(), 1);
}

}  // namespace skein
