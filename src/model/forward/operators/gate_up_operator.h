#pragma once

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// act = silu(h · Wgate^T + b) * (h · Wup^T + b), by chunk: the first half of a decoder's MLP.
class GateUpOperator : public Operator {
 public:
  GateUpOperator(PassState& pass, const LayerWeights& layer);

  std::string_view name() const override { return "gate_up"; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  PassState& pass_;
  const LayerWeights& layer_;
  ProductCutter cutter_;
  ProductCut cut_;
  OperatorRange range_;
};

}  // namespace skein
