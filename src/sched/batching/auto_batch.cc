#include "sched/batching/auto_batch.h"

#include <algorithm>

#include "sched/batching/slo_batch.h"

namespace skein {
namespace {

// In a step of this many times SaturationTokens, the constant cost is a twentieth of the step's
// time.
constexpr int64_t kSaturations = 2;

}  // namespace

int64_t AutoBatching::MaxTokens(const StepSoFar& step) {
  if (!cost_->known()) return kAny;
  const int64_t budget = kSaturations * SaturationTokens(cost_->fit());
  const int64_t num_left = budget - step.num_tokens;
  const auto head = std::ranges::find(step.prefills, nullptr, &StepRow::prefix);
  if (head == step.prefills.end() || num_left < 1) return num_left;
  const RequestRecord& request = *head->sequence->request;
  if (!request.request.slo_ttft_us) return num_left;
  StepWork own = WorkOf(head->num_tokens, head->begin());
  const auto left_us = static_cast<double>(request.deadline_us - step.now_us);
  if (left_us <= cost_->PredictUs(own)) return num_left;
  const SloBatch batch{.fit = cost_->fit(),
                       .left_us = left_us,
                       .token_budget = budget,
                       .head = own,
                       .num_head_tokens = head->num_tokens};
  return batch.MaxTokens(step.num_tokens - head->num_tokens);
}

}  // namespace skein
