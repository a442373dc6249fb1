#pragma once

#include "model/forward/operator.h"
#include "model/forward/operators/head_store.h"
#include "model/forward/pass_state.h"

namespace skein {

// h · Wqkv^T + b, by chunk. q and k are normed and rotated. q is rounded; k and v are stored in the
// KV cache. The sums stay in the thread's cache until their heads are stored.
class QkvOperator : public Operator {
 public:
  QkvOperator(PassState& pass, int32_t layer);

  std::string_view name() const override { return "qkv"; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  // Rows [row_begin, row_end) of the range at columns [col_begin, col_end) of q, k and v: whole
  // heads.
  struct Part {
    int32_t row_begin, row_end, col_begin, col_end;
  };

  PassState& pass_;
  const int32_t index_;  // of the layer
  const LayerWeights& layer_;
  const HeadStore heads_;
  ProductCutter cutter_;
  ProductCut cut_;
  OperatorRange range_;
};

}  // namespace skein
