#include "sched/mixed_steps.h"

#include <algorithm>

#include "base/check.h"

namespace skein {

DecodeSharing CompareDecodeSharing(const CostModel& cost, int64_t new_tokens, int64_t cached_tokens,
                                   const StepWork& decodes, double rate_us) {
  SKEIN_CHECK(new_tokens >= 1 && rate_us > 0 && cost.known());
  DecodeSharing sharing;
  const double decode_us = cost.PredictUs(decodes, StepKind::kDecode);
  const double share = std::min(0.5, decode_us / rate_us);
  sharing.inserted_us =
      cost.PredictUs(WorkOf(new_tokens, cached_tokens), StepKind::kPrefill) / (1 - share);

  // Later chunks attend to more tokens: the last decides how long all may be.
  const auto last_us = [&](int64_t chunk) {
    StepWork work = WorkOf(chunk, cached_tokens + new_tokens - chunk);
    work += decodes;
    return cost.PredictUs(work, StepKind::kMixed);
  };
  int64_t fits = 0, too_long = new_tokens + 1;
  while (fits + 1 < too_long) {
    const int64_t middle = fits + (too_long - fits) / 2;
    (last_us(middle) <= rate_us ? fits : too_long) = middle;
  }
  if (fits == 0) return sharing;
  sharing.chunk_tokens = static_cast<int32_t>(fits);
  const int64_t num_steps = (new_tokens + fits - 1) / fits;
  StepWork work = WorkOf(new_tokens, cached_tokens);
  for (const auto term : {&StepWork::num_tokens, &StepWork::num_pairs, &StepWork::num_rows}) {
    work.*term += static_cast<double>(num_steps) * decodes.*term;
  }
  const auto more_steps = static_cast<double>(num_steps - 1);
  work.num_rows += more_steps;
  sharing.mixed_us = cost.PredictUs(work, StepKind::kMixed) +
                     more_steps * cost.PredictUs(StepWork{}, StepKind::kMixed);
  return sharing;
}

}  // namespace skein
