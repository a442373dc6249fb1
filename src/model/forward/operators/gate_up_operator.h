#pragma once

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// act = activation(h · Wgate^T + b) * (h · Wup^T + b), by chunk: the first half of an MLP with a
// gate. If adapters change the rows of a ticket, both sums stay in the thread's cache until the
// changes are added.
class GateUpOperator : public Operator {
 public:
  GateUpOperator(PassState& pass, int32_t layer);

  std::string_view name() const override { return "gate_up"; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  // A ticket: rows [row, row + m) of the range at columns [col_begin, col_end).
  struct Part {
    int32_t row, m, col_begin, col_end;
  };
  // Whether an adapter changes a row of the part.
  bool HasAdapters(const Part& part) const;
  // The product with the columns of gate (up_begin 0) or of up, for a part. The caller sets the
  // output.
  GemmCall CallOn(const Part& part, int32_t up_begin) const;
  void RunFused(const Part& part);
  void RunWithAdapters(const Part& part);
  // Writes the sums of gate (up_begin 0) or of up, with the adapters' changes, to out [m, ldo].
  void Sums(const Part& part, int32_t up_begin, float* out, int64_t ldo) const;
  // Computes act of a part from these sums, and overwrites those of gate.
  void StoreAct(const Part& part, float* gate, const float* up, int64_t ld) const;

  PassState& pass_;
  const int32_t index_;  // of the layer
  const LayerWeights& layer_;
  const int32_t padded_;  // the columns of gate, and of up
  ProductCutter cutter_;
  ProductCut cut_;
  OperatorRange range_;
};

}  // namespace skein
