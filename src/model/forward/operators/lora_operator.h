#pragma once

#include <span>
#include <string_view>

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// lora = in · a^T, by chunk, for rows with an adapter: the first half of the adapters' change of a
// product (LoraPair). No tickets where no row has one.
class LoraOperator : public Operator {
 public:
  // in: the product's input rows in the compute type.
  LoraOperator(PassState& pass, std::string_view name, LoraProduct product, int32_t layer,
               const Operand& in)
      : pass_(pass), name_(name), product_(product), layer_(layer), in_(in) {}

  std::string_view name() const override { return name_; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  // Rows [begin, begin + pairs.size()) of the range times pair.a; kept for the rows whose pair it
  // is.
  void Multiply(const LoraPair& pair, int32_t begin, std::span<const LoraPair* const> pairs);

  PassState& pass_;
  const std::string_view name_;
  const LoraProduct product_;
  const int32_t layer_;
  const Operand in_;
  OperatorRange range_;
};

}  // namespace skein
