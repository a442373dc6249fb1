#pragma once

#include <vector>

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

enum class LinearOutput : uint8_t {
  kNewResidual,  // x_out = x + product, rows of the batch
  kResidual,     // x_out += product, rows of the batch
  kBranch,       // sums = product, rows of the range
  kQkv,          // sums = product, rows of the range
  kSums,         // sums = product, rows of the range, of any width
  kOutputs,      // the outputs of the chunk = product
};

struct LinearSpec {
  std::string_view name;
  const PackedWeight& weight;      // [n, k]
  const std::vector<float>* bias;  // [n]; null or empty: no bias
  Operand in;                      // [rows, k]
  LinearOutput output = LinearOutput::kResidual;
  int32_t layer = -1;  // the layer, if an adapter may change its product; else -1
  LoraProduct product = LoraProduct::kOutput;
  bool are_logits = false;  // of the output matrix: PassState::FinishLogits follows
};

// A product with a weight matrix, plus its bias and the changes of the rows' adapters.
class LinearOperator : public Operator {
 public:
  LinearOperator(PassState& pass, const LinearSpec& spec);

  std::string_view name() const override { return spec_.name; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  // Copies the ticket's part of x to x_out, unless the two are the same.
  void CopyResidual(int32_t ticket) const;
  const float* bias() const;
  // The address of row 0 of the range.
  struct Target {
    float* out;
    int64_t ldo;
    bool adds;
  };
  Target TargetOf() const;

  PassState& pass_;
  const LinearSpec spec_;
  ProductCutter cutter_;
  ProductCut cut_;
  OperatorRange range_;
};

}  // namespace skein
