#pragma once

#include "model/forward/operators/row_operator.h"

namespace skein {

// Rounds the first `num_columns` of each row to int8, for the int8 product that follows.
class QuantizeOperator : public RowOperator {
 public:
  QuantizeOperator(PassState& pass, std::string_view name, const Operand& from, int32_t num_columns)
      : RowOperator(pass), name_(name), from_(from), num_columns_(num_columns) {}

  std::string_view name() const override { return name_; }

 private:
  void RunRows(int32_t begin, int32_t end) override;

  const std::string_view name_;
  const Operand from_;
  const int32_t num_columns_;
};

}  // namespace skein
