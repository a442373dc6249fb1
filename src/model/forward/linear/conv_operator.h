#pragma once

#include <vector>

#include "model/forward/linear/state_rows.h"

namespace skein {

// The convolution of q, k and v of a linear layer, in place and by chunk. Then q and k of each head
// are scaled to a length of one, and q also by 1 / sqrt(k_dim). A ticket is one head.
class ConvOperator : public Operator {
 public:
  ConvOperator(PassState& pass, int32_t layer);

  std::string_view name() const override { return "conv"; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  PassState& pass_;
  const LinearWeights& weights_;
  const LinearLayers& shape_;
  StateRows rows_;
  std::vector<float> q_gain_, k_gain_;  // [k_dim]
};

}  // namespace skein
