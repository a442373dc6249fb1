#pragma once

#include <span>
#include <string_view>

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// lora = in · a^T, by chunk, for rows with an adapter: the first half of the adapters' change of a
// product (LoraPair). There are no tickets if no row has an adapter.
class LoraOperator : public Operator {
 public:
  // in: the input rows of the changed product, in the compute type.
  LoraOperator(PassState& pass, std::string_view name, LoraProduct product, int32_t layer,
               const Operand& in)
      : pass_(pass), name_(name), product_(product), layer_(layer), in_(in) {}

  std::string_view name() const override { return name_; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  // Multiplies rows
  // [begin, begin + pairs.size()) of the operator's range by pair.a. Stores only the products of
  // the rows that use this pair: pairs[i]
  // == &pair.
  void Multiply(const LoraPair& pair, int32_t begin, std::span<const LoraPair* const> pairs);

  PassState& pass_;
  const std::string_view name_;
  const LoraProduct product_;
  const int32_t layer_;
  const Operand in_;
  OperatorRange range_;
};

}  // namespace skein
