#pragma once

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
// many, behind short and long shared prefixes. The samples are enough for FitDecodes. Returns none
// if the profiler's rows do not draw, or if not all keys and values are retained.
std::vector<DecodeSample> ProfileSharedDecodes(StepProfiler& profiler, const Clock& clock,
                                               const DecodeProfileLimits& limits);

}  // namespace skein
