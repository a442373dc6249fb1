#pragma once

#include "model/forward/operators/row_operator.h"

namespace skein {

// attn = norm(result) * silu(z) of each head of a linear layer, by chunk.
class GatedNormOperator : public RowOperator {
 public:
  GatedNormOperator(PassState& pass, int32_t layer);

  std::string_view name() const override { return "gated_norm"; }

 private:
  void RunRows(int32_t begin, int32_t end) override;

  const LinearWeights& weights_;
};

}  // namespace skein
