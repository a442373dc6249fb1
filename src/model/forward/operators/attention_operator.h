#pragma once

#include "model/forward/kv_blocks.h"
#include "model/forward/operator.h"
#include "model/forward/outputs/option_places.h"
#include "model/forward/pass_state.h"

namespace skein {

// attn = softmax(q · K^T * scale) · V. A ticket is one tile of rows for the query heads of one KV
// head. Every token sees the keys up to its own position, in a bidirectional model those of the
// whole row; in local layers the ones of these that lie near it. Options that are read side by side
// do not see each other.
class AttentionOperator : public Operator {
 public:
  AttentionOperator(PassState& pass, int32_t layer);

  std::string_view name() const override { return "attention"; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  // Query heads [first, end) of one KV head: all of its group, or kMaxQueryRows of a larger one.
  struct Heads {
    int32_t kv_head, first, end;
  };
  Heads HeadsOf(int32_t ticket) const;
  // The visible keys of a token at `position`.
  KeyWindow WindowOf(int32_t position) const;
  // Sets the window of a token whose row reads options side by side. Returns the bits of its
  // visible keys, written to `words`, or null if the window hides none.
  const uint32_t* FindVisible(const OptionPlaces& places, int32_t position, uint32_t* words,
                              KeyWindow* window) const;
  void Attend(const Heads& heads, std::span<const AttentionRow> rows) const;

  PassState& pass_;
  const KvBlocks blocks_;
  const LocalLayers* const local_;  // null: the layer is global
  AttentionTiles& tiles_;
  const int32_t group_;  // query heads of one KV head
  const float scale_;
  const bool hides_options_;  // a head's layers see all tokens
};

}  // namespace skein
