#pragma once

#include "model/forward/operators/row_operator.h"

namespace skein {

// x = the embedding rows of the tokens, times the model's scale.
class EmbedOperator : public RowOperator {
 public:
  explicit EmbedOperator(PassState& pass);

  std::string_view name() const override { return "embed"; }

 private:
  void RunRows(int32_t begin, int32_t end) override;

  const float scale_;
};

}  // namespace skein
