#pragma once

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// An operator that works row by row. A ticket is kTokensPerTicket rows of the range.
class RowOperator : public Operator {
 public:
  int32_t Begin(OperatorRange range) final;
  void Run(int32_t ticket) final;

 protected:
  explicit RowOperator(PassState& pass) : pass_(pass) {}

  // Works on rows [begin, end) of the range.
  virtual void RunRows(int32_t begin, int32_t end) = 0;

  PassState& pass_;
  OperatorRange range_;
};

}  // namespace skein
