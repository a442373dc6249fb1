#include "cuda/executor/device_batch.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/ceil_div.h"
#include "cuda/executor/device_weights.h"
#include "kernels/packed_weight.h"

namespace skein::cuda {
namespace {

static_assert(sizeof(RowsOfMean) == 2 * sizeof(int32_t) && sizeof(SlotCopy) == 3 * sizeof(int32_t));

// Adds the draws of a chunk of logits. Returns the index of their first word; 0: there are none.
size_t AddDraws(std::span<const RowDraw> draws, int32_t num_padding, std::vector<int32_t>* words) {
  if (std::ranges::none_of(draws, [](const RowDraw& draw) { return draw.temperature != 0; })) {
    return 0;
  }
  const size_t begin = words->size();
  words->resize(begin + (draws.size() + num_padding) * kRowDrawWords);
  std::memcpy(words->data() + begin, draws.data(), draws.size_bytes());
  return begin;
}

}  // namespace

DeviceBatch::DeviceBatch(Device* device, const ForwardContext& model, int32_t chunk_tokens,
                         int32_t carried_state)
    : device_(device),
      config_(model.weights->config),
      pooling_(model.pooling),
      computes_outputs_(DeviceComputesOutputs(*model.weights)),
      cutter_(model, chunk_tokens),
      chunk_tokens_(chunk_tokens),
      carried_state_(carried_state) {}

Status DeviceBatch::Assign(const ForwardBatch& batch, const BatchLayout& layout,
                           std::span<const BlockCopy> copies, const Padding& padding,
                           std::span<const RowDraw> draws) {
  words_.clear();
  AddTokens(batch, layout, padding);
  const int32_t num_padding = std::max(0, padding.num_tokens - batch.num_tokens());
  extras_ =
      AddBatchExtras(config_, batch, layout, {num_padding, chunk_tokens_, carried_state_}, &words_);
  AddRowTiles(batch, layout, padding);
  AddGathered(batch, layout);
  copies_ = words_.size();
  num_copies_ = static_cast<int32_t>(copies.size());
  for (const BlockCopy& copy : copies) {
    words_.insert(words_.end(), {copy.from, copy.to, kKvBlockTokens});
  }
  forks_ = words_.size();
  num_forks_ = static_cast<int32_t>(layout.forks().size());
  for (const int32_t index : layout.forks()) {
    const ForwardRow& row = batch.rows[index];
    words_.insert(words_.end(), {row.fork.from, layout.Table(index)[row.begin / kKvBlockTokens],
                                 row.fork.num_tokens});
  }
  AddOutputs(batch, layout, padding, draws);
  AddTables(batch, layout);
  return Copy();
}

void DeviceBatch::AddTokens(const ForwardBatch& batch, const BatchLayout& layout,
                            const Padding& padding) {
  const size_t surplus = std::max(0, padding.num_tokens - batch.num_tokens());
  tokens_ = words_.size();
  words_.insert(words_.end(), batch.tokens.begin(), batch.tokens.end());
  words_.insert(words_.end(), surplus, 0);
  const auto for_each_token = [&](const auto& fn) {
    for (int32_t index = 0; index < static_cast<int32_t>(batch.rows.size()); ++index) {
      const ForwardRow& row = batch.rows[index];
      for (int32_t i = 0; i < row.num_tokens; ++i) fn(index, row.begin + i);
    }
  };
  positions_ = words_.size();
  for_each_token([&](int32_t, int32_t position) { words_.push_back(position); });
  words_.insert(words_.end(), surplus, 0);
  blocks_ = words_.size();
  for_each_token([&](int32_t row, int32_t position) {
    words_.push_back(layout.Table(row)[position / kKvBlockTokens]);
  });
  words_.insert(words_.end(), surplus, padding.block);
}

void DeviceBatch::AddRowTiles(const ForwardBatch& batch, const BatchLayout& layout,
                              const Padding& padding) {
  tiles_.clear();
  int32_t row = 0;
  for (int32_t begin = 0; begin < batch.num_tokens(); begin += chunk_tokens_) {
    const int32_t end = std::min(batch.num_tokens(), begin + chunk_tokens_);
    runs_.clear();
    for (; row < std::ssize(batch.rows) && batch.rows[row].first_token < end; ++row) {
      const int32_t first = std::max(begin, batch.rows[row].first_token);
      const int32_t row_end = batch.rows[row].first_token + batch.rows[row].num_tokens;
      runs_.push_back({row, first, std::min(end, row_end) - first});
      if (row_end > end) break;  // it goes on in the next chunk
    }
    tiles_.push_back(
        cutter_.Cut(batch, layout, extras_, runs_, begin, padding.num_tokens, &words_));
  }
}

void DeviceBatch::AddGathered(const ForwardBatch& batch, const BatchLayout& layout) {
  gathered_.chunks.clear();
  const int32_t count = layout.num_active() < batch.num_tokens() ? layout.num_active() : 0;
  gathered_.count = count;
  if (count == 0) return;
  int32_t most_in_order = 0, next = 0, row = 0;
  for (int32_t begin = 0; begin < batch.num_tokens(); begin += chunk_tokens_) {
    GatheredChunk& chunk = gathered_.chunks.emplace_back();
    chunk = {.begin = words_.size(), .first = next};
    for (; next < count && layout.TokenAt(next) < begin + chunk_tokens_; ++next) {
      words_.push_back(layout.TokenAt(next) - begin);
    }
    chunk.count = next - chunk.first;
    FindRuns(batch, layout, {row, chunk.first, chunk.count});
    if (!runs_.empty()) row = runs_.back().row;
    chunk.tiles = cutter_.Cut(batch, layout, extras_, runs_, begin, 0, &words_);
    chunk.in_order = chunk.count > 0 && layout.TokenAt(chunk.first) < next;
    if (chunk.in_order) most_in_order = std::max(most_in_order, chunk.count);
  }
  gathered_.in_order = words_.size();
  for (int32_t i = 0; i < most_in_order; ++i) words_.push_back(i);
}

void DeviceBatch::FindRuns(const ForwardBatch& batch, const BatchLayout& layout,
                           const RowSpan& active) {
  runs_.clear();
  const int32_t group_size = config_.num_heads / config_.num_kv_heads;
  // A gap does not end a run whose last narrow tile has room for the tokens of the gap and for the
  // token behind it: they cost no tile.
  const auto goes_on = [group_size](const RowSpan& run, int32_t token) {
    const int32_t narrow_tiles = CeilDiv(run.count * group_size, kAttentionRows);
    return token == run.first + run.count ||
           (token + 1 - run.first) * group_size <= narrow_tiles * kAttentionRows;
  };
  int32_t row = active.row;
  for (int32_t i = active.first; i < active.first + active.count; ++i) {
    const int32_t token = layout.TokenAt(i);
    while (token >= batch.rows[row].first_token + batch.rows[row].num_tokens) ++row;
    if (!runs_.empty() && runs_.back().row == row && goes_on(runs_.back(), token)) {
      runs_.back().count = token + 1 - runs_.back().first;
    } else {
      runs_.push_back({row, token, 1});
    }
  }
}

DeviceBatch::Tiles DeviceBatch::TilesAt(const TileWords& words) const {
  Tiles tiles = {.on_device = On<AttentionTile>(words.begin),
                 .on_host = OnHost<AttentionTile>(words.begin, words.count),
                 .rows = words.rows,
                 .num_wide = words.num_wide,
                 .num_segments = words.num_segments};
  if (words.num_prefixes == 0) return tiles;
  tiles.prefixes = On<AttentionTile>(words.prefixes);
  tiles.prefixes_on_host = OnHost<AttentionTile>(words.prefixes, words.num_prefixes);
  tiles.prefix_tokens = On<int32_t>(words.prefix_tokens);
  tiles.prefix_rows = words.prefix_rows;
  tiles.shared = On<SharedPrefix>(words.shared);
  tiles.shared_on_host = OnHost<SharedPrefix>(words.shared, words.count);
  return tiles;
}

void DeviceBatch::AddTables(const ForwardBatch& batch, const BatchLayout& layout) {
  tables_ = words_.size();
  for (int32_t index = 0; index < static_cast<int32_t>(batch.rows.size()); ++index) {
    const std::span<const int32_t> table = layout.Table(index);
    words_.insert(words_.end(), table.begin(), table.end());
  }
}

bool DeviceBatch::IsMean(OutputKind kind) const {
  return (kind == OutputKind::kEmbedding && pooling_ == Pooling::kMean) ||
         (kind == OutputKind::kClasses && config_.encoder.classifies_mean);
}

void DeviceBatch::AddMeans(const ForwardBatch& batch, const BatchLayout& layout,
                           const OutputChunk& chunk) {
  const bool classes = chunk.kind == OutputKind::kClasses;
  const std::vector<int32_t>& pooled = classes ? batch.classified_rows : batch.embedded_rows;
  const auto rows = std::span(pooled).subspan(chunk.first, chunk.count);
  Outputs& outputs = outputs_.back();
  for (const int32_t index : rows) {
    // All tokens of the row are output tokens.
    const ForwardRow& row = batch.rows[index];
    const int32_t first = layout.ActiveIndex(row.first_token);
    for (int32_t i = 0; i < row.num_tokens; ++i) words_.push_back(first + i);
    outputs.num_tokens += row.num_tokens;
  }
  output_words_.back().means = words_.size();
  int32_t first = 0;
  for (const int32_t index : rows) {
    words_.insert(words_.end(), {first, batch.rows[index].num_tokens});
    first += batch.rows[index].num_tokens;
  }
}

void DeviceBatch::AddOutputs(const ForwardBatch& batch, const BatchLayout& layout,
                             const Padding& padding, std::span<const RowDraw> draws) {
  outputs_.clear();
  output_words_.clear();
  if (!computes_outputs_) return;
  for (const OutputChunk& chunk : layout.outputs()) {
    output_words_.push_back({.tokens = words_.size()});
    Outputs& outputs = outputs_.emplace_back();
    if (IsMean(chunk.kind)) {
      AddMeans(batch, layout, chunk);
      continue;
    }
    outputs.num_tokens = chunk.count;
    for (int32_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
      words_.push_back(layout.ActiveIndex(layout.OutputToken(chunk.kind, i)));
    }
    const int32_t num_padding = std::max(0, padding.num_tokens - chunk.count);
    words_.insert(words_.end(), num_padding, 0);
    if (chunk.kind == OutputKind::kLogits && !draws.empty()) {
      output_words_.back().draws =
          AddDraws(draws.subspan(chunk.first, chunk.count), num_padding, &words_);
    }
    if (chunk.kind != OutputKind::kLabels) continue;
    for (int32_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
      for (const int32_t label : batch.label_outputs[i].labels) {
        outputs.panel_ids.push_back(label / kPanelCols);
      }
    }
    std::ranges::sort(outputs.panel_ids);
    const auto surplus = std::ranges::unique(outputs.panel_ids);
    outputs.panel_ids.erase(surplus.begin(), surplus.end());
    output_words_.back().panels = words_.size();
    words_.insert(words_.end(), outputs.panel_ids.begin(), outputs.panel_ids.end());
  }
}

Status DeviceBatch::Copy() {
  const size_t bytes = words_.size() * sizeof(int32_t);
  if (bytes > on_host_.bytes()) {
    const size_t room = std::bit_ceil(bytes);
    SKEIN_ASSIGN_OR_RETURN(on_device_, Buffer::Make(device_, Buffer::Place::kDevice, room));
    SKEIN_ASSIGN_OR_RETURN(on_host_, Buffer::Make(device_, Buffer::Place::kHost, room));
  }
  std::memcpy(on_host_.as<int32_t>(), words_.data(), bytes);
  device_->CopyToDevice(on_device_.as<int32_t>(), on_host_.as<int32_t>(), bytes);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const OutputWords& at = output_words_[i];
    outputs_[i].tokens = On<int32_t>(at.tokens);
    if (at.means > 0) outputs_[i].means = On<RowsOfMean>(at.means);
    if (at.panels > 0) outputs_[i].panels = On<int32_t>(at.panels);
    if (at.draws > 0) outputs_[i].draws = On<RowDraw>(at.draws);
  }
  return Status::Ok();
}

}  // namespace skein::cuda
