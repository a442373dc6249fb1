#include "sched/mixed_steps.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace skein {

DecodeSharing CompareDecodeSharing(const CostModel& cost, int64_t new_tokens, int64_t cached_tokens,
                                   const StepWork& decodes, double rate_us) {
  SKEIN_CHECK(new_tokens >= 1 && rate_us > 0 && cost.known());
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
  const double num_mixed = fits == 0 ? 0 : static_cast<double>((new_tokens + fits - 1) / fits);

  // As many tokens for each decode: those of the mixed steps, or of the rate where that is more.
  const double prefill_us = cost.PredictUs(WorkOf(new_tokens, cached_tokens), StepKind::kPrefill);
  const double decode_us = cost.PredictUs(decodes, StepKind::kDecode);
  const double gap_us = std::max(rate_us - decode_us, decode_us);  // between two inserted steps
  const double num_inserted = std::max(num_mixed, std::ceil(prefill_us / gap_us));
  DecodeSharing sharing = {.chunk_tokens = static_cast<int32_t>(fits),
                           .inserted_us = prefill_us + num_inserted * decode_us};
  if (fits == 0) return sharing;
  StepWork work = WorkOf(new_tokens, cached_tokens);
  for (const auto term : {&StepWork::num_tokens, &StepWork::num_pairs, &StepWork::num_rows}) {
    work.*term += num_mixed * decodes.*term;
  }
  work.num_rows += num_mixed - 1;
  sharing.mixed_us = cost.PredictUs(work, StepKind::kMixed) +
                     (num_mixed - 1) * cost.PredictUs(StepWork{}, StepKind::kMixed) +
                     (num_inserted - num_mixed) * decode_us;
  return sharing;
}

}  // namespace skein
