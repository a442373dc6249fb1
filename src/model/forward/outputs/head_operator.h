#pragma once

#include "model/forward/operators/row_operator.h"

namespace skein {

// h = norm(activation(Wdense · h + b)) for a chunk of classes or of sparse vectors: the first layer
// of a head. Some heads have no norm.
class HeadOperator : public RowOperator {
 public:
  explicit HeadOperator(PassState& pass) : RowOperator(pass) {}

  std::string_view name() const override { return "head"; }

 private:
  void RunRows(int32_t begin, int32_t end) override;
};

}  // namespace skein
