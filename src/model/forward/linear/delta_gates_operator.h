#pragma once

#include <vector>

#include "model/forward/operators/row_operator.h"

namespace skein {

// For each head of a linear layer, in place and by chunk: beta = sigmoid(b) and
// decay = exp(-exp(a_log) * softplus(a + dt_bias)). Computed in double and rounded once.
class DeltaGatesOperator : public RowOperator {
 public:
  DeltaGatesOperator(PassState& pass, int32_t layer);

  std::string_view name() const override { return "delta_gates"; }

 private:
  void RunRows(int32_t begin, int32_t end) override;

  const LinearWeights& weights_;
  std::vector<double> rate_;  // [num_v_heads]: exp(a_log)
};

}  // namespace skein
