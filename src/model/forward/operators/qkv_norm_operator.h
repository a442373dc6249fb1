#pragma once

#include "model/forward/operators/head_store.h"
#include "model/forward/operators/row_operator.h"

namespace skein {

// For a model in which the norms of q and k span all heads (OLMo 2). Norms the rows of the product
// for q, k and v, by chunk, and stores them.
class QkvNormOperator : public RowOperator {
 public:
  QkvNormOperator(PassState& pass, int32_t layer);

  std::string_view name() const override { return "qkv_norm"; }

 private:
  void RunRows(int32_t begin, int32_t end) override;

  const LayerWeights& layer_;
  const HeadStore heads_;
};

}  // namespace skein
