#include "sched/batching/slo_batch.h"

namespace skein {

double SloBatch::PredictUs(int64_t num_other_tokens) const {
  StepWork work = head;
  if (num_other_tokens > 0) work += WorkOf(num_other_tokens, 0);
  return skein::PredictUs(fit, work);
}

int64_t SloBatch::MaxTokens(int64_t num_other_tokens) const {
  // The condition holds up to `low` and not from `high` on.
  int64_t low = 0;
  int64_t high = token_budget - num_head_tokens - num_other_tokens;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (left_us > PredictUs(num_other_tokens + middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace skein
