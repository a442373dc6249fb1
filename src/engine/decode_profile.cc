#include "engine/decode_profile.h"

#include <algorithm>
#include <optional>

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

DecodeProfile::DecodeProfile(StepProfiler* profiler, const Clock* clock,
                             const DecodeProfileLimits& limits)
    : profiler_(profiler), clock_(clock), limit_us_(limits.time_us) {
  if (profiler->draws() && profiler->retains_all()) {
    steps_ = StepsOf(limits, profiler->num_kv_blocks());
  }
}

bool DecodeProfile::Measure(const std::atomic<bool>& stop) {
  const ProfileDecodes& step = steps_[next_];
  const DecodeWork work = WorkOfDecodes(step);
  const double end_us = static_cast<double>(used_us_) + 2 * us_per_token_ * work.asked;
  const bool late = samples_.size() >= kMinDecodeSamples && end_us > static_cast<double>(limit_us_);
  if (late || !profiler_->Fits(step)) {
    ++next_;
    return true;
  }
  const TimeUs begin_us = clock_->NowUs();
  // The first run is not counted: it touches memory that no step has touched.
  std::optional<double> us = profiler_->TryDecodesUs(step, stop);
  if (us) us = profiler_->TryDecodesUs(step, stop);
  used_us_ += clock_->NowUs() - begin_us;
  if (!us) return false;
  samples_.push_back({work, *us});
  us_per_token_ = *us / work.asked;
  ++next_;
  return true;
}

int32_t DecodeProfile::most_blocks() const {
  int64_t most = 0;
  for (const ProfileDecodes& step : steps_) most = std::max(most, NumBlocksOf(step));
  return static_cast<int32_t>(most);
}

std::vector<DecodeSample> ProfileSharedDecodes(StepProfiler& profiler, const Clock& clock,
                                               const DecodeProfileLimits& limits) {
  const std::atomic<bool> never{false};
  DecodeProfile profile(&profiler, &clock, limits);
  while (!profile.done()) profile.Measure(never);
  return profile.samples();
}

}  // namespace skein
