#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "engine/executor.h"
#include "sched/config.h"
#include "sched/cost_model.h"
#include "skein/request.h"

namespace skein {

struct ProfileRow {
  int32_t new_tokens = 1;
  int32_t cached_tokens = 0;
};

// Times steps straight through an executor, with meaningless tokens on blocks from 0 on, whose
// contents it overwrites: before an engine starts.
class StepProfiler {
 public:
  // `executor` and `clock` outlive this. `output` is what each row ends in: a greedy draw where it
  // generates, else what is read of the row. `retention` is the executor's.
  StepProfiler(Executor* executor, const Clock* clock, int32_t vocab_size, int32_t num_kv_blocks,
               OutputSpec output, Retention retention = Retention::kAll);

  // Microseconds of one step of these rows, once. REQUIRES: they are not empty and fit the
  // executor's step; and they fit the blocks, unless not all is retained: then their cached tokens
  // do, and what has no block is the executor's own.
  double MeasureUs(std::span<const ProfileRow> rows);
  // The least of `runs` such measurements, after one that is not counted.
  double LeastUs(std::span<const ProfileRow> rows, int runs);
  double MedianUs(std::span<const ProfileRow> rows, int runs);  // of `runs` > 0

  int32_t num_kv_blocks() const { return num_kv_blocks_; }
  bool retains_all() const { return retention_ == Retention::kAll; }

 private:
  Executor* const executor_;
  const Clock* const clock_;
  const int32_t vocab_size_;
  const int32_t num_kv_blocks_;
  const OutputSpec output_;
  const Retention retention_;
};

struct CostProfileLimits {
  int32_t max_step_tokens = 0;  // of one step
  int32_t max_model_len = 0;    // may be more than the blocks hold
  bool cached = true;    // rows may begin behind others (not where prompts are computed whole)
  int32_t max_rows = 2;  // of one step
  // No measurement begins that would end later, by those before it.
  TimeUs time_us = 4'000'000;
};

// Those of a start under `config`: up to the longest prefill step that it plans, which is a whole
// prompt, whatever the token budget, where not all keys and values are retained (StepBoundsOf); the
// profile may end before, when its time is over or, where all are, at what the blocks hold.
CostProfileLimits ProfileLimitsOf(const SchedulerConfig& config);

// A few steps of all kinds, from short to long, behind nothing and some behind half the context (or
// half of what the blocks hold): enough for FitCosts. At least three where there are steps of more
// than one token; none where all is retained in fewer than two blocks.
std::vector<CostSample> ProfileCosts(StepProfiler& profiler, const Clock& clock,
                                     const CostProfileLimits& limits);

}  // namespace skein
