#pragma once

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// act = activation(h · Wup^T + b), by chunk: the first half of an MLP without a gate.
class UpOperator : public Operator {
 public:
  UpOperator(PassState& pass, int32_t layer);

  std::string_view name() const override { return "up"; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  PassState& pass_;
  const LayerWeights& layer_;
  const Activation activation_;
  ProductCutter cutter_;
  ProductCut cut_;
  OperatorRange range_;
};

}  // namespace skein
