#pragma once

#include "model/forward/layout.h"
#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// h = norm(x) for the tokens of a chunk of logits, labels or classes; with int8 weights also the
// int8 rows.
class OutputNormOperator : public Operator {
 public:
  OutputNormOperator(PassState& pass, OutputKind kind) : pass_(pass), kind_(kind) {}

  std::string_view name() const override { return "output_norm"; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  PassState& pass_;
  const OutputKind kind_;
  OperatorRange range_;
};

}  // namespace skein
