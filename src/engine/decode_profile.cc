#include "engine/decode_profile.h"

#include <algorithm>

namespace skein {
namespace {

constexpr TimeUs kDecodeProfileUs = 700'000;
constexpr int32_t kLongPrefix = 8192;
constexpr int32_t kShortPrefix = 512;
constexpr size_t kMinDecodeSamples = 4;

DecodeWork WorkOfDecodes(const ProfileDecodes& decodes) {
  const double rows = double{1} * decodes.num_groups * decodes.rows_per_group;
  const double own = rows * decodes.own_tokens;
  return {.num_rows = rows,
          .asked = rows * decodes.shared_tokens + own,
          .unique = double{1} * decodes.num_groups * decodes.shared_tokens + own};
}

// The steps that fit the limits, sorted by the tokens that they ask for.
std::vector<ProfileDecodes> StepsOf(const DecodeProfileLimits& limits, int32_t num_kv_blocks) {
  std::vector<ProfileDecodes> steps;
  std::vector<int32_t> sizes;
  for (int32_t rows = 1; rows < limits.max_rows; rows *= 4) sizes.push_back(rows);
  sizes.push_back(limits.max_rows);
  for (const int32_t rows : sizes) {
    for (int32_t groups = 1; groups <= std::min(rows, 64); groups *= 4) {
      for (const int32_t shared : {0, kShortPrefix, kLongPrefix / 4, kLongPrefix}) {
        for (const int32_t own : {kBlockTokens, 8 * kBlockTokens}) {
          const ProfileDecodes step{.num_groups = groups,
                                    .rows_per_group = rows / groups,
                                    .shared_tokens = shared,
                                    .own_tokens = own};
          if (shared + own > limits.max_model_len || NumBlocksOf(step) > num_kv_blocks) continue;
          if (shared == 0 && groups > 1) continue;
          steps.push_back(step);
        }
      }
    }
  }
  std::ranges::stable_sort(steps, {}, [](const ProfileDecodes& step) {
    const DecodeWork work = WorkOfDecodes(step);
    return work.asked + kLongPrefix * work.num_rows / 16;
  });
  return steps;
}

}  // namespace

DecodeProfileLimits DecodeProfileLimitsOf(const SchedulerConfig& config) {
  return {.max_rows = config.max_num_seqs,
          .max_model_len = config.max_model_len,
          .time_us = kDecodeProfileUs};
}

std::vector<DecodeSample> ProfileSharedDecodes(StepProfiler& profiler, const Clock& clock,
                                               const DecodeProfileLimits& limits) {
  if (!profiler.draws() || !profiler.retains_all()) return {};
  const TimeUs end_us = clock.NowUs() + limits.time_us;
  std::vector<DecodeSample> samples;
  double us_per_token = 0;  // of the longest step so far
  for (const ProfileDecodes& step : StepsOf(limits, profiler.num_kv_blocks())) {
    const DecodeWork work = WorkOfDecodes(step);
    const bool few = samples.size() < kMinDecodeSamples;
    const double predicted_us = us_per_token * work.asked;
    if (!few &&
        static_cast<double>(clock.NowUs()) + 2 * predicted_us > static_cast<double>(end_us)) {
      continue;
    }
    // The first run is not counted: it touches memory that no step has touched.
    profiler.MeasureDecodesUs(step);
    const double us = profiler.MeasureDecodesUs(step);
    samples.push_back({work, us});
    us_per_token = us / work.asked;
  }
  return samples;
}

}  // namespace skein
