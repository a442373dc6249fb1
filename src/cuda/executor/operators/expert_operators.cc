#include "cuda/executor/operators/expert_operators.h"

#include "base/check.h"
#include "cuda/executor/operators/layer_op.h"
#include "cuda/kernels/launches.h"

namespace skein::cuda {

void ExpertOperators::Run(int op, int32_t layer, const OperatorSlice& slice, int32_t num_rows,
                          float* x) {
  slice_ = slice;
  num_rows_ = num_rows;
  const DeviceLayer& weights = context_.weights->layers[layer];
  switch (op) {
    case kRoute:
      return Route(weights);
    case kChooseExperts:
      return Choose(weights);
    case kListSlots:
      return ListSlots();
    case kExpertGateUp:
      return GateUp(weights);
    case kExpertDown:
      return Down(weights);
    case kSumExperts:
      return Sum(x);
    default:
      SKEIN_CHECK(false);
  }
}

void ExpertOperators::Route(const DeviceLayer& layer) {
  launcher_.Multiply(memory_->h, layer.router, GemmOutput::kStore,
                     {.bias = layer.router_bias,
                      .m = num_rows_,
                      .columns = layer.router.n,
                      .out = memory().logits.as<void>(),
                      .ldo = layer.router.n});
}

void ExpertOperators::Choose(const DeviceLayer& layer) {
  launcher_.Run(ChooseExpertsLaunch({.logits = memory().logits.as<float>(),
                                     .ldl = layer.router.n,
                                     .num_tokens = num_rows_,
                                     .num_experts = config_.num_experts,
                                     .per_token = config_.experts_per_token,
                                     .norm_weights = config_.norm_expert_weights,
                                     .experts = memory().chosen.as<int32_t>(),
                                     .weights = memory().weights.as<float>(),
                                     .shared_weights = memory().shared_weights.as<float>(),
                                     .shared_logit = layer.router.n - 1}));
}

void ExpertOperators::ListSlots() {
  launcher_.Run(ListSlotsLaunch({.experts = memory().chosen.as<int32_t>(),
                                 .num_slots = num_slots(),
                                 .num_experts = config_.num_experts,
                                 .counts = memory().counts.as<int32_t>(),
                                 .slots = memory().slots.as<int32_t>(),
                                 .capacity = limits_.chunk()}));
}

void ExpertOperators::GateUp(const DeviceLayer& layer) {
  const Activations::Operand& act = memory().act;
  Multiply(GemmOutput::kGated, memory_->h, num_rows_, layer.expert_gate_up,
           config_.experts_per_token,
           {.bias = layer.expert_gate_up_bias,
            .columns = config_.expert_size,
            .up_panel = config_.expert_padded() / kPanelCols,
            .gate = *GateOf(config_.activation),
            .out = launcher_.ColumnsIn(act, context_.model.weights->config.expert_size),
            .ldo = act.width});
}

void ExpertOperators::Down(const DeviceLayer& layer) {
  Multiply(GemmOutput::kStore, memory().act, num_slots(), layer.expert_down, 1,
           {.bias = layer.expert_down_bias,
            .columns = columns_.size(),
            .out = columns_of(memory().out.as<float>()),
            .ldo = config_.hidden_size});
}

void ExpertOperators::Sum(float* x) {
  const bool has_shared = config_.decoder.shared_expert_size > 0;
  float* const branch = memory_->branch.as<float>();
  launcher_.Run(SumExpertsLaunch({.out = columns_of(memory().out.as<float>()),
                                  .weights = memory().weights.as<float>(),
                                  .shared = has_shared ? columns_of(branch) : nullptr,
                                  .shared_weights = memory().shared_weights.as<float>(),
                                  .num_tokens = num_rows_,
                                  .per_token = config_.experts_per_token,
                                  .width = columns_.size(),
                                  .stride = config_.hidden_size,
                                  .x = columns_of(x)}));
}

void ExpertOperators::Multiply(GemmOutput output, const Activations::Operand& in, int32_t num_rows,
                               const DeviceMatrix& w, int32_t slots_per_row, GemmArgs args) {
  // The rows stay rounded for the slices behind the first.
  if (slice_.first == 0) launcher_.Round(in, w, 0, num_rows);
  launcher_.SetOperands(in, w, 0, &args);
  args.m = num_rows_;
  args.groups = {.counts = memory().counts.as<int32_t>(),
                 .slots = memory().slots.as<int32_t>(),
                 .capacity = limits_.chunk(),
                 .slots_per_row = slots_per_row,
                 .first_group = slice_.first,
                 .num_groups = slice_.count,
                 .panels = w.num_panels()};
  // The slots of all experts, as a share: which experts have them is known to the device alone.
  const int64_t of_slice = int64_t{num_slots()} * slice_.count / config_.num_experts;
  launcher_.Run(GroupedGemmLaunch(w.dtype, output, dtype(), of_slice, args));
}

}  // namespace skein::cuda
