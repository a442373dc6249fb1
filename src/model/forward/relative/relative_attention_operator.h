#pragma once

#include "model/forward/kv_blocks.h"
#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// Attention with RelativeAttention's terms, in a bidirectional model:
//
//   attn = softmax((q · K^T + q · keys[row]^T + K · queries[row]^T) / sqrt(3 * head_dim)) · V
//
// keys and queries are the projected table, and row is that of the distance of q from the key. A
// ticket is one tile of rows and one head. Takes up to 640 KB on the stack, with the walk's.
class RelativeAttentionOperator : public Operator {
 public:
  RelativeAttentionOperator(PassState& pass, int32_t layer);

  std::string_view name() const override { return "attention"; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  // Rows of one span that attend in one call.
  void Attend(const RowSpan& span, int32_t head) const;
  // Writes the products of the rows' q with the keys of the table: out [span.count, num_rows].
  void QueryTerms(const RowSpan& span, int32_t head, float* out) const;
  int32_t PositionOf(const RowSpan& span, int32_t i) const {
    return pass_.layout.Position(span.row, pass_.layout.TokenAt(span.first + i));
  }

  PassState& pass_;
  const LayerWeights& layer_;
  const KvBlocks blocks_;
  const float scale_;
};

}  // namespace skein
