#include "model/forward/operators/attention_operator.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace skein {

namespace {

float ScaleOf(const ModelConfig& config) {
  const double scale = config.decoder.attention_scale;
  return static_cast<float>(scale > 0 ? scale : 1.0 / std::sqrt(double(config.head_dim)));
}

}  // namespace

AttentionOperator::AttentionOperator(PassState& pass, int32_t layer)
    : pass_(pass),
      blocks_(pass, layer),
      local_(pass.config().IsLocal(layer) ? &pass.config().local : nullptr),
      tiles_(local_ == nullptr ? pass.tiles : pass.local_tiles),
      group_(pass.config().num_heads / pass.config().num_kv_heads),
      scale_(ScaleOf(pass.config())),
      sinks_(pass.weights().layers[layer].sinks),
      hides_options_(!pass.config().IsHeadLayer(layer)) {}

int32_t AttentionOperator::Begin(OperatorRange) {
  tiles_.Update();
  return static_cast<int32_t>(tiles_.tiles().size()) * pass_.config().num_kv_heads *
         CeilDiv(group_, kMaxQueryRows);
}

AttentionOperator::Heads AttentionOperator::HeadsOf(int32_t ticket) const {
  const auto num_tiles = static_cast<int32_t>(tiles_.tiles().size());
  const int32_t heads_per_call = std::min(group_, kMaxQueryRows);
  const int32_t calls_per_group = CeilDiv(group_, kMaxQueryRows);
  const int32_t kv_head = ticket / num_tiles / calls_per_group;
  const int32_t first = kv_head * group_ + ticket / num_tiles % calls_per_group * heads_per_call;
  return {kv_head, first, std::min(first + heads_per_call, (kv_head + 1) * group_)};
}

KeyWindow AttentionOperator::WindowOf(int32_t position) const {
  if (local_ == nullptr) return {};
  return {std::max(position - local_->before, 0), position + local_->after + 1};
}

const uint32_t* AttentionOperator::FindVisible(const OptionPlaces& places, int32_t position,
                                               uint32_t* words, KeyWindow* window) const {
  const bool hides = places.FindVisible(position, pass_.config().bidirectional, local_, words,
                                        &window->first, &window->end);
  return hides ? words : nullptr;
}

void AttentionOperator::Run(int32_t ticket) {
  constexpr int32_t kWords = 8 << 10;  // bits of the visible keys, for the tokens of a call
  const ModelConfig& c = pass_.config();
  const AttentionTile& tile = tiles_.tiles()[ticket % tiles_.tiles().size()];
  const Heads heads = HeadsOf(ticket);
  const int32_t q_width = pass_.q_width();
  const DistanceBias* const bias = pass_.distance_bias.get();
  AttentionRow rows[kMaxQueryRows];
  uint32_t words[kWords];
  size_t num_rows = 0;
  int32_t num_words = 0;
  for (const RowSpan& span : tiles_.spans().subspan(tile.first_span, tile.num_spans)) {
    const std::span<const int32_t> table = pass_.layout.Table(span.row);
    const ForwardRow& row = pass_.batch.rows[span.row];
    const bool has_options = hides_options_ && !row.option_bounds.empty();
    const OptionPlaces places(row.option_bounds, row.num_tokens);
    const int32_t row_words = has_options ? CeilDiv(row.num_tokens, 32) : 0;
    SKEIN_CHECK(row_words <= kWords);
    for (int32_t active = span.first; active < span.first + span.count; ++active) {
      const int32_t position = pass_.layout.Position(span.row, pass_.layout.TokenAt(active));
      const int32_t num_keys =
          c.bidirectional ? std::min(row.num_tokens, row.num_attended) : position + 1;
      KeyWindow window = WindowOf(position);
      window.first = std::min(window.first, num_keys - 1);
      const uint32_t* visible = nullptr;
      if (has_options) {
        if (num_words + row_words > kWords) {
          Attend(heads, {rows, num_rows});
          num_rows = 0;
          num_words = 0;
        }
        visible = FindVisible(places, position, words + num_words, &window);
        if (visible != nullptr) num_words += row_words;
      }
      for (int32_t h = heads.first; h < heads.end; ++h) {
        const int64_t column = int64_t{h} * c.head_dim;
        rows[num_rows++] = {pass_.At(pass_.workspace.q, active, column, q_width),
                            pass_.At(pass_.workspace.attn, active, column, q_width),
                            num_keys,
                            static_cast<int32_t>(table.size()),
                            table.data(),
                            window,
                            visible,
                            bias == nullptr ? nullptr : bias->Of(h, position),
                            sinks_.empty() ? AttentionRow().sink : sinks_[h]};
      }
    }
  }
  Attend(heads, {rows, num_rows});
}

void AttentionOperator::Attend(const Heads& heads, std::span<const AttentionRow> rows) const {
  const KvLayout& layout = pass_.context.kv_layout;
  pass_.kernels().Attention({
      .rows = rows,
      .kv = blocks_.Cache(heads.kv_head),
      .own_kv = pass_.workspace.own_kv + heads.kv_head * layout.head_bytes(),
      .layout = &layout,
      .scale = scale_,
      .soft_cap = pass_.config().decoder.score_cap,
      .piece_stride = pass_.piece_stride(),
      .dtype = pass_.weights().dtype,
  });
}

}  // namespace skein
