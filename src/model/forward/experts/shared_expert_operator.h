#pragma once

#include "model/forward/operators/row_operator.h"

namespace skein {

// x += sigmoid(h · Wgate^T) * sums, by chunk. It ends the expert that every token of a mixture goes
// through; the workspace's sums [rows, hidden] are its product with `down`.
class SharedExpertOperator : public RowOperator {
 public:
  SharedExpertOperator(PassState& pass, const LayerWeights& layer)
      : RowOperator(pass), layer_(layer) {}

  std::string_view name() const override { return "shared_expert"; }

 private:
  void RunRows(int32_t begin, int32_t end) override;

  const LayerWeights& layer_;
};

}  // namespace skein
