#pragma once

#include "model/forward/operators/row_operator.h"

namespace skein {

// attn = attn * sigmoid(gate), by chunk. The gates [rows, q] are in the workspace's sums.
class AttentionGateOperator : public RowOperator {
 public:
  explicit AttentionGateOperator(PassState& pass) : RowOperator(pass) {}

  std::string_view name() const override { return "attention_gate"; }

 private:
  void RunRows(int32_t begin, int32_t end) override;
};

}  // namespace skein
