#pragma once

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// Rounds the first `num_columns` of each row to int8, for the int8 product that follows.
class QuantizeOperator : public Operator {
 public:
  QuantizeOperator(PassState& pass, std::string_view name, const Operand& from, int32_t num_columns)
      : pass_(pass), name_(name), from_(from), num_columns_(num_columns) {}

  std::string_view name() const override { return name_; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  PassState& pass_;
  const std::string_view name_;
  const Operand from_;
  const int32_t num_columns_;
  OperatorRange range_;
};

}  // namespace skein
