#pragma once

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// x = embedding rows of the tokens.
class EmbedOperator : public Operator {
 public:
  explicit EmbedOperator(PassState& pass) : pass_(pass) {}

  std::string_view name() const override { return "embed"; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  PassState& pass_;
  OperatorRange range_;
};

}  // namespace skein
