#pragma once

#include "model/forward/layout.h"
#include "model/forward/operators/row_operator.h"

namespace skein {

// h = norm(x) for the tokens of a chunk of logits, labels or classes; with int8 weights also the
// int8 rows.
class OutputNormOperator : public RowOperator {
 public:
  OutputNormOperator(PassState& pass, OutputKind kind) : RowOperator(pass), kind_(kind) {}

  std::string_view name() const override { return "output_norm"; }

 private:
  void RunRows(int32_t begin, int32_t end) override;

  const OutputKind kind_;
};

}  // namespace skein
