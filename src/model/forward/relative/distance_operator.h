#pragma once

#include "model/forward/kv_blocks.h"
#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// The terms of the keys in RelativeAttention: the product of each key with the rows of the table.
// A ticket is one KV block and one head.
class DistanceOperator : public Operator {
 public:
  DistanceOperator(PassState& pass, int32_t layer);

  std::string_view name() const override { return "distances"; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  PassState& pass_;
  const LayerWeights& layer_;
  const KvBlocks blocks_;
};

}  // namespace skein
