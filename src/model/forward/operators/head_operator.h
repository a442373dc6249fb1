#pragma once

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// h = norm(activation(Wdense · h + b)) for a chunk of classes: the first layer of a classifier's
// head. Not every head has the norm.
class HeadOperator : public Operator {
 public:
  explicit HeadOperator(PassState& pass) : pass_(pass) {}

  std::string_view name() const override { return "head"; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  PassState& pass_;
  OperatorRange range_;
};

}  // namespace skein
