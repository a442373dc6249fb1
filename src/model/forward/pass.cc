#include "model/forward/pass.h"

#include "base/check.h"

namespace skein {

ForwardPass::ForwardPass(const ForwardContext& context, const ForwardLimits& limits)
    : state_(context, limits),
      program_(MakeProgram(state_)),
      cursor_(program_, state_.limits.chunk()) {}

void ForwardPass::Begin() {
  SKEIN_CHECK(!state_.limits.outputs_alone);
  state_.layout.Assign();
  cursor_.Begin(state_.layout.outputs(), state_.layout.num_active());
  outputs_taken_ = false;
  BeginOperator();
}

void ForwardPass::BeginOutputs(const ForwardBatch& batch, float* x) {
  SKEIN_CHECK(state_.limits.outputs_alone);
  state_.batch = batch;
  state_.layout.Assign();
  if (state_.config().gathers_outputs()) state_.layout.KeepOutputTokens();
  state_.workspace.x = x;
  cursor_.BeginOutputs(state_.layout.outputs());
  outputs_taken_ = false;
  if (!Finished()) BeginOperator();
}

void ForwardPass::BeginOperator() { num_tickets_ = cursor_.op().Begin(cursor_.range()); }

ForwardStatus ForwardPass::Run(const std::atomic<bool>* stop, StopAt stop_at) {
  const ThreadTeam::TicketFn run_ticket = [this](int ticket, int) { cursor_.op().Run(ticket); };
  while (!Finished()) {
    if (stop != nullptr && cursor_.AtBoundary(stop_at) && stop->load(std::memory_order_relaxed)) {
      return ForwardStatus::kStopped;
    }
    cursor_.set_next_ticket(state_.context.team->Run(position().next_ticket, num_tickets_,
                                                     run_ticket,
                                                     stop_at == StopAt::kTicket ? stop : nullptr));
    if (position().next_ticket < num_tickets_) return ForwardStatus::kStopped;
    if (cursor_.in_outputs() && cursor_.AtListEnd() && !outputs_taken_) {
      outputs_taken_ = true;
      return chunk().kind == OutputKind::kLogits ? ForwardStatus::kLogits : ForwardStatus::kOutputs;
    }
    Advance();
  }
  return ForwardStatus::kDone;
}

void ForwardPass::Advance() {
  outputs_taken_ = false;
  const bool in_layer = cursor_.in_layer();
  cursor_.Next(state_.layout.num_active());
  if (in_layer && cursor_.AtListBegin()) state_.workspace.EndLayer();
  if (!Finished()) BeginOperator();
}

const float* ForwardPass::output(int32_t i) const {
  SKEIN_CHECK(i >= 0 && i < chunk().count && outputs_taken_);
  return state_.workspace.logits + i * state_.workspace.output_width;
}

float* ForwardPass::output(int32_t i) {
  SKEIN_CHECK(i >= 0 && i < chunk().count && outputs_taken_);
  return state_.workspace.logits + i * state_.workspace.output_width;
}

}  // namespace skein
