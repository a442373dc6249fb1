#pragma once

#include <atomic>
#include <vector>

#include "engine/cost_profile.h"
#include "sched/decode_set/decode_cost.h"

namespace skein {

// The limits of a profile of decodes, for an engine of `config`.
struct DecodeProfileLimits {
  int32_t max_rows = 0;       // of one step
  int32_t max_model_len = 0;  // tokens of a row
  // A measurement is skipped if it would end later than this, as predicted from the earlier
  // measurements.
  TimeUs time_us = 0;
};
DecodeProfileLimits DecodeProfileLimitsOf(const SchedulerConfig& config);

// Measures steps of decodes alone, short ones first: from one row to max_rows, from one group to
// many, behind short and long shared prefixes. The samples are enough for FitDecodes. There are
// none if the profiler's rows do not draw, or if not all keys and values are retained. Steps that
// do not fit the profiler's memory at their turn are left out. Not thread-safe.
class DecodeProfile {
 public:
  // `profiler` and `clock` outlive the profile.
  DecodeProfile(StepProfiler* profiler, const Clock* clock, const DecodeProfileLimits& limits);

  bool done() const { return next_ == steps_.size(); }
  // Measures the next step. Returns false if `stop` read true before it was measured: the next call
  // begins it again. REQUIRES: done() is false.
  bool Measure(const std::atomic<bool>& stop);
  const std::vector<DecodeSample>& samples() const { return samples_; }
  // The number of blocks that the largest step takes.
  int32_t most_blocks() const;

 private:
  StepProfiler* const profiler_;
  const Clock* const clock_;
  const TimeUs limit_us_;
  TimeUs used_us_ = 0;                 // interrupted measurements included
  std::vector<ProfileDecodes> steps_;  // by the tokens that they ask for
  size_t next_ = 0;                    // in steps_
  double us_per_token_ = 0;            // of the longest step so far
  std::vector<DecodeSample> samples_;
};

// The samples of a complete DecodeProfile.
std::vector<DecodeSample> ProfileSharedDecodes(StepProfiler& profiler, const Clock& clock,
                                               const DecodeProfileLimits& limits);

}  // namespace skein
