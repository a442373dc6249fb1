#pragma once

#include <array>

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// The stages of a mixture of experts, in the order in which they run. A slot is one token at one of
// its experts (ExpertRoutes).
enum class ExpertStage : uint8_t {
  kRoute,     // r = h · Wrouter^T; each token chooses its experts and their weights
  kGather,    // in = h: a row for each slot, grouped by expert
  kGateUp,    // act = silu(in · Wgate^T) * (in · Wup^T), each expert over its slots
  kQuantize,  // rounds act to int8; only with weights of int8 or of blocks
  kDown,      // out = act · Wdown^T
  kSum,       // x += weight * out: each token over its experts, in order
};
inline constexpr std::array kExpertStages = {ExpertStage::kRoute,  ExpertStage::kGather,
                                             ExpertStage::kGateUp, ExpertStage::kQuantize,
                                             ExpertStage::kDown,   ExpertStage::kSum};

// One stage of a mixture of experts, which a layer has instead of an MLP (docs/numerics.md,
// "Experts"), by chunk. The stages share PassState::expert_routes and the cuts of the products.
class ExpertsOperator : public Operator {
 public:
  ExpertsOperator(PassState& pass, const LayerWeights& layer, ExpertStage stage)
      : pass_(pass), layer_(layer), stage_(stage) {}

  std::string_view name() const override;
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  // The tokens of the range, or the slots.
  int32_t num_rows() const {
    const bool slots = stage_ == ExpertStage::kQuantize;
    return slots ? range_.count * pass_.config().experts_per_token : range_.count;
  }
  // Assigns slots to tokens at their chosen experts, and cuts the products.
  void Group();
  void Route(int32_t begin, int32_t end);
  void Gather(int32_t begin, int32_t end);
  void GateUp(const GroupedCut::Ticket& ticket);
  void Quantize(int32_t begin, int32_t end);  // slots
  void Down(const GroupedCut::Ticket& ticket);
  void Sum(int32_t begin, int32_t end);

  PassState& pass_;
  const LayerWeights& layer_;
  const ExpertStage stage_;
  OperatorRange range_;
};

}  // namespace skein
