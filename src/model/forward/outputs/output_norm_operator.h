#pragma once

#include "model/forward/layout.h"
#include "model/forward/operators/row_operator.h"

namespace skein {

// h = norm(x) for the tokens of a chunk of logits, labels, classes, markers or sparse vectors. With
// int8 weights, the int8 rows are written, too. For actions, h is x itself.
class OutputNormOperator : public RowOperator {
 public:
  OutputNormOperator(PassState& pass, OutputKind kind) : RowOperator(pass), kind_(kind) {}

  std::string_view name() const override { return "output_norm"; }

 private:
  void RunRows(int32_t begin, int32_t end) override;

  const OutputKind kind_;
};

}  // namespace skein
