#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/forward/context.h"
#include "model/forward/layout.h"

namespace skein {

// The spans [first_span, first_span + num_spans) of AttentionTiles::spans(), which attend in one
// call.
struct AttentionTile {
  int32_t first_span = 0;
  int32_t num_spans = 0;
  int32_t num_tokens = 0;  // of all spans; at most AttentionTileTokens
};

// The active tokens of a batch, cut into tiles of attention. Rows that share leading blocks are in
// the same tiles, so that one walk reads those blocks for all of them (AttentionCall). Other rows
// get their own tiles.
class AttentionTiles {
 public:
  // All references are borrowed. `window`: the number of keys to which a token attends in the
  // layers of these tiles; 0: all keys. The tokens of a tile then lie within one window, so that a
  // walk over all their keys takes time in proportion to the window. Rows with a window share no
  // tile.
  AttentionTiles(const ForwardContext& context, const ForwardLimits& limits,
                 const ForwardBatch& batch, const BatchLayout& layout, int32_t window);

  // Cuts the active tokens anew if they have changed. Costs one sort of the rows by their block
  // tables.
  void Update();

  std::span<const AttentionTile> tiles() const { return tiles_; }
  // Spans of active tokens. If only output tokens are active, a span may skip positions.
  std::span<const RowSpan> spans() const { return spans_; }

 private:
  void SortRows();
  void AddRow(int32_t row, int32_t last_row, int32_t joined_tokens);
  bool ShareFirstStep(int32_t a, int32_t b) const;
  // The number of tokens that a tile takes of `count` active tokens of a row, from `active` on.
  int32_t TokensOfTile(int32_t row, int32_t active, int32_t count) const;
  int32_t PositionOf(int32_t row, int32_t active) const {
    return layout_.Position(row, layout_.TokenAt(active));
  }
  int32_t group() const;
  int32_t JoinedTokens() const;

  const ForwardContext& context_;
  const ForwardBatch& batch_;
  const BatchLayout& layout_;
  const int32_t window_;
  uint64_t version_ = 0;  // of the layout; 0: not cut yet
  std::vector<AttentionTile> tiles_;
  std::vector<RowSpan> spans_;
  std::vector<int32_t> sorted_rows_;  // rows with the same leading blocks are adjacent
};

}  // namespace skein
