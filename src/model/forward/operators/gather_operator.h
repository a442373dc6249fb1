#pragma once

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// Runs in the last layer, after its keys and values are stored. Only the output tokens stay active
// (BatchLayout). Attention, its output product and the MLP skip all other tokens, since no output
// is read from them. The rows of q and x of the output tokens move to the front, in order. Each row
// keeps its position, sequence and block table, so none of its bits changes.
class GatherOperator : public Operator {
 public:
  explicit GatherOperator(PassState& pass) : pass_(pass) {}

  std::string_view name() const override { return "gather"; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  PassState& pass_;
  int32_t num_tickets_ = 0;
};

}  // namespace skein
