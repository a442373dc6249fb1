#pragma once

#include "model/forward/kv_blocks.h"
#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// Rows that begin inside a block of their parent take over its keys and values: a ticket for each.
class ForkOperator : public Operator {
 public:
  ForkOperator(PassState& pass, int32_t layer) : pass_(pass), blocks_(pass, layer) {}

  std::string_view name() const override { return "fork"; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  PassState& pass_;
  const KvBlocks blocks_;
};

}  // namespace skein
