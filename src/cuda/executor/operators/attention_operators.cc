#include "cuda/executor/operators/attention_operators.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "cuda/kernels/launches.h"

namespace skein::cuda {
namespace {

float AttentionScale(const ModelConfig& config) {
  if (config.encoder.relative.span > 0) {
    return static_cast<float>(1.0 / std::sqrt(3.0 * config.head_dim));
  }
  const double scale = config.decoder.attention_scale;
  return static_cast<float>(scale > 0 ? scale : 1.0 / std::sqrt(double(config.head_dim)));
}

}  // namespace

void AttentionOperators::Run(int32_t layer, const ChunkRows& rows, const OperatorSlice& slice,
                             bool gathered) {
  layer_ = layer;
  const DeviceBatch::Tiles tiles =
      gathered ? integers_->gathered_tiles(rows.index) : integers_->tiles(rows.index);
  const AttentionArgs args = ArgsOf(tiles, rows);
  const int32_t num_prefixes = is_local() ? 0 : tiles.num_prefixes();
  const int32_t end = slice.first + slice.count;
  WalkPrefixes(tiles, args, std::min(slice.first, num_prefixes), std::min(end, num_prefixes));
  const int32_t first = std::max(slice.first - num_prefixes, 0);
  const int32_t last = std::max(end - num_prefixes, 0);
  const int32_t narrow = std::clamp(tiles.num_wide, first, last);
  Walk(tiles, args, first, narrow, tiles.rows);
  Walk(tiles, args, narrow, last, kAttentionRows);
}

AttentionArgs AttentionOperators::ArgsOf(const DeviceBatch::Tiles& tiles,
                                         const ChunkRows& rows) const {
  const ModelConfig& c = config_;
  const BatchExtras& extras = integers_->extras();
  const int32_t keys_after = c.bidirectional ? kAllKeys : 0;
  const int64_t width = int64_t{context_.model.weights->config.num_heads} * c.head_dim;
  // A decision head's own layers hide no options from each other.
  const uint32_t* visible = c.IsHeadLayer(layer_) ? nullptr : integers_->visible(is_local());
  if (visible != nullptr) visible += int64_t{rows.first} * integers_->visible_words();
  return {.tables = integers_->tables(),
          .num_segments = tiles.num_segments,
          .keys_before = is_local() ? extras.locally_before : -1,
          .keys_after = is_local() ? extras.locally_after : keys_after,
          .visible = visible,
          .visible_words = integers_->visible_words(),
          .relative = Terms(rows.count),
          .distances = context_.weights->distances,
          .sinks = Sinks(),
          .num_heads = c.num_heads,
          .num_kv_heads = c.num_kv_heads,
          .head_dim = c.head_dim,
          .head_dim_padded = context_.model.kv_layout.head_dim_padded(),
          .scale = AttentionScale(c),
          .soft_cap = c.decoder.score_cap,
          .q = memory_->q.Row(rows.first),
          .ldq = memory_->q.width,
          .out = launcher_.ColumnsIn(memory_->attn, width),
          .ldo = memory_->attn.width,
          .kv = launcher_.KvOf(layer_)};
}

RelativeTerms AttentionOperators::Terms(int32_t num_tokens) const {
  if (config_.encoder.relative.span == 0) return {};
  return {.rows = integers_->relative().rows,
          .num_positions = integers_->extras().relative_positions,
          .num_rows = config_.encoder.relative.num_rows(),
          .num_tokens = num_tokens,
          .terms = memory_->relative.terms.as<float>()};
}

// Those of the rank's heads.
const float* AttentionOperators::Sinks() const {
  const float* const sinks = context_.weights->layers[layer_].sinks;
  return sinks == nullptr ? nullptr : sinks + context_.rank.index * config_.num_heads;
}

void AttentionOperators::WalkPrefixes(const DeviceBatch::Tiles& tiles, AttentionArgs args,
                                      int32_t begin, int32_t end) {
  if (begin == end) return;
  args.tiles = tiles.prefixes + begin;
  args.tile_rows = tiles.prefix_rows;
  args.tokens = tiles.prefix_tokens;
  args.num_tiles = begin;
  args.partial = memory_->partial.prefixes.as<float>() + PartialBytes(args) / sizeof(float);
  args.num_tiles = end - begin;
  launcher_.Run(AttentionLaunch(dtype_, args, context_.device->has_phases()));
}

void AttentionOperators::Walk(const DeviceBatch::Tiles& tiles, AttentionArgs args, int32_t begin,
                              int32_t end, int32_t rows) {
  if (begin == end) return;
  args.tile_rows = rows;
  args.partial = memory_->partial.tiles.as<float>();
  const bool shares = !is_local() && tiles.num_prefixes() > 0;
  if (shares) args.shared = {nullptr, memory_->partial.prefixes.as<float>(), tiles.prefix_rows};
  int32_t most = std::min(end - begin, kMaxAttentionTiles);
  if (args.num_segments > 1) {
    args.num_tiles = 1;
    const auto fit = static_cast<int64_t>(memory_->partial.tiles.bytes()) / PartialBytes(args);
    SKEIN_CHECK(fit >= 1);
    const int64_t count = end - begin, groups = (count + fit - 1) / fit;
    most = std::min(most, static_cast<int32_t>((count + groups - 1) / groups));
  }
  for (int32_t first = begin; first < end; first += most) {
    args.tiles = tiles.on_device + first;
    args.num_tiles = std::min(most, end - first);
    if (shares) args.shared.of_tiles = tiles.shared + first;
    launcher_.Run(AttentionLaunch(dtype_, args, context_.device->has_phases()));
    if (args.num_segments > 1) launcher_.Run(MergeSegmentsLaunch(dtype_, args));
  }
}

}  // namespace skein::cuda
