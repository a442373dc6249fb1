#pragma once

#include "model/forward/kv_blocks.h"
#include "model/forward/operator.h"
#include "model/forward/outputs/option_places.h"
#include "model/forward/pass_state.h"

namespace skein {

// attn = softmax(q · K^T * scale) · V, with capped scores if the model caps them. A ticket is one
// tile of rows, for the query heads of one KV head. Every token attends to the keys up to its own
// position, or in a bidirectional model to all keys of its row. In local layers, it attends only to
// those of these keys that are near its position. Options that are read side by side do not attend
// to each other.
class AttentionOperator : public Operator {
 public:
  AttentionOperator(PassState& pass, int32_t layer);

  std::string_view name() const override { return "attention"; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  // Query heads [first, end) of one KV head: all heads of its group, or kMaxQueryRows heads of a
  // larger group.
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
  const std::vector<float>& sinks_;  // [num_heads], or empty
  const bool hides_options_;         // false in the layers of a head, which attend to all tokens
};

}  // namespace skein
