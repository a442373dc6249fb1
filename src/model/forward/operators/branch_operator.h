#pragma once

#include <vector>

#include "model/forward/operators/row_operator.h"

namespace skein {

struct BranchSpec {
  std::string_view name;
  const std::vector<float>& norm;  // [hidden]; empty: no norm
  float* ForwardWorkspace::*x;     // the residual before the addition: rows of the batch
};

// x_out = x + scale * norm(sums), by chunk. It adds the result of attention or of the MLP to the
// residual.
class BranchOperator : public RowOperator {
 public:
  BranchOperator(PassState& pass, const BranchSpec& spec) : RowOperator(pass), spec_(spec) {}

  std::string_view name() const override { return spec_.name; }

 private:
  void RunRows(int32_t begin, int32_t end) override;

  const BranchSpec spec_;
};

}  // namespace skein
