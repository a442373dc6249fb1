#include "sched/batching/slo_batch.h"

#include <algorithm>

namespace skein {

double SloBatch::PredictUs(int64_t num_other_tokens) const {
  StepWork work = head;
  if (num_other_tokens > 0) work += WorkOf(num_other_tokens, 0);
  return skein::PredictUs(fit, work);
}

int64_t SloBatch::MaxTokens(int64_t num_other_tokens) const {
  // In each round, the condition holds at `low` and fails at `high`.
  int64_t low = 0;
  int64_t high = token_budget - num_head_tokens - num_other_tokens;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (left_us > PredictUs(num_other_tokens + middle) ? low : high) = middle;
  }
  return low;
}

int64_t SloAwareBatching::MaxTokens(const StepSoFar& step) {
  int64_t num_tokens = 0;
  for (const StepRow& row : step.prefills) num_tokens += row.num_tokens;
  if (!batch_) {
    const auto head = std::ranges::find(step.prefills, nullptr, &StepRow::prefix);
    if (head == step.prefills.end()) return 0;
    batch_ =
        SloBatch{.fit = cost_->fit(),
                 .left_us = static_cast<double>(head->sequence->request->deadline_us - step.now_us),
                 .token_budget = token_budget_,
                 .num_head_tokens = num_tokens};
    for (const StepRow& row : step.prefills) batch_->head += WorkOf(row.num_tokens, row.begin());
  }
  return batch_->MaxTokens(num_tokens - batch_->num_head_tokens);
}

}  // namespace skein
