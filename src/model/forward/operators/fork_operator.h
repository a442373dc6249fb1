#pragma once

#include "model/forward/kv_blocks.h"
#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// Copies keys and values for rows that begin inside a block of their parent. A ticket is one row.
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
