#include "sched/batching/mixed_steps.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace skein {
namespace {

// The largest n of [1, end] for which `fits` holds; 0 if there is none. REQUIRES: wherever `fits`
// fails, it fails for all larger n.
template <typename Fits>
int64_t Largest(int64_t end, const Fits& fits) {
  int64_t begin = 0;
  while (begin < end) {
    const int64_t middle = begin + (end - begin + 1) / 2;
    fits(middle) ? begin = middle : end = middle - 1;
  }
  return begin;
}

}  // namespace

DecodeSharing CompareDecodeSharing(const CostModel& cost, int64_t new_tokens, int64_t cached_tokens,
                                   int64_t max_tokens, const StepWork& decodes, double rate_us) {
  SKEIN_CHECK(new_tokens >= 1 && rate_us > 0 && cost.known());
  const auto keeps_rate = [&](StepWork prompts) {
    prompts += decodes;
    return cost.PredictUs(prompts, StepKind::kMixed) <= rate_us;
  };
  // Later chunks attend to more tokens, so the last chunk bounds the length of all chunks.
  const int64_t fits = Largest(std::min(new_tokens, max_tokens), [&](int64_t chunk) {
    return keeps_rate(WorkOf(chunk, cached_tokens + new_tokens - chunk));
  });
  const auto keeps_rate_with = [&](int64_t others) {
    StepWork prompts = WorkOf(new_tokens, cached_tokens);
    prompts += WorkOf(others, 0);
    return keeps_rate(prompts);
  };
  const int64_t others = fits == new_tokens ? Largest(max_tokens - new_tokens, keeps_rate_with) : 0;
  const double num_mixed = fits == 0 ? 0 : static_cast<double>((new_tokens + fits - 1) / fits);

  // Both ways give each decode the same number of tokens. It is the number of mixed steps, or the
  // number of inserted steps at this rate if that is larger.
  const double prefill_us = cost.PredictUs(WorkOf(new_tokens, cached_tokens), StepKind::kPrefill);
  const double decode_us = cost.PredictUs(decodes, StepKind::kDecode);
  const double gap_us = std::max(rate_us - decode_us, decode_us);  // between two inserted steps
  const double num_inserted = std::max(num_mixed, std::ceil(prefill_us / gap_us));
  DecodeSharing sharing = {.chunk_tokens = static_cast<int32_t>(fits),
                           .step_tokens = static_cast<int32_t>(fits + others),
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
