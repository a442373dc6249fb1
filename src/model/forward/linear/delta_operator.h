#pragma once

#include "model/forward/linear/state_rows.h"

namespace skein {

// The gated delta rule of a linear layer, by chunk: each head's result replaces its v. A ticket is
// kDeltaCols columns of one head, for all tokens of the chunk, one after the other.
class DeltaOperator : public Operator {
 public:
  DeltaOperator(PassState& pass, int32_t layer);

  std::string_view name() const override { return "delta"; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  PassState& pass_;
  const LinearLayers& shape_;
  StateRows rows_;
};

}  // namespace skein
