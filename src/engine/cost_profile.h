#pragma once

#include <cstdint>
#include <span>
#include <variant>
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

// Decodes in groups; each group shares a prefix.
struct ProfileDecodes {
  int32_t num_groups = 1;
  int32_t rows_per_group = 1;
  int32_t shared_tokens = 0;  // of each group; whole blocks
  int32_t own_tokens = 1;     // of each row, including its new token
};
// The number of blocks that the decodes take.
int64_t NumBlocksOf(const ProfileDecodes& decodes);

// Times steps directly on an executor, before an engine starts. The tokens are arbitrary. The
// contents of blocks from 0 on are overwritten.
class StepProfiler {
 public:
  // `executor` and `clock` outlive the profiler. `output` is the output of each row: a greedy draw
  // for generation, else a read. `retention` is that of the executor.
  StepProfiler(Executor* executor, const Clock* clock, int32_t vocab_size, int32_t num_kv_blocks,
               OutputSpec output, Retention retention = Retention::kAll);

  // Microseconds of one step of these rows, measured once. REQUIRES: the rows are not empty and fit
  // the executor's step. With retention kAll, all tokens of the rows fit the blocks; otherwise
  // their cached tokens do. (The executor has its own memory for tokens without a block.)
  double MeasureUs(std::span<const ProfileRow> rows);
  // The least of `runs` measurements by MeasureUs, after one measurement that is not counted.
  double LeastUs(std::span<const ProfileRow> rows, int runs);
  double MedianUs(std::span<const ProfileRow> rows, int runs);  // `runs` > 0

  // Microseconds of one step of decodes alone, measured once. REQUIRES: the profiler's rows draw;
  // the rows fit the executor's step, and NumBlocksOf(decodes) blocks exist; shared_tokens is a
  // multiple of kBlockTokens; own_tokens, num_groups and rows_per_group are at least 1.
  double MeasureDecodesUs(const ProfileDecodes& decodes);

  int32_t num_kv_blocks() const { return num_kv_blocks_; }
  bool draws() const { return std::holds_alternative<GenerateSpec>(output_); }
  bool retains_all() const { return retention_ == Retention::kAll; }

 private:
  double RunUs(const StepPlan& step);

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
  bool cached = true;    // rows may begin behind cached tokens (false if prompts are computed in
                         // one row)
  int32_t max_rows = 2;  // of one step
  // A measurement is skipped if it would end later than this, as predicted from the earlier
  // measurements.
  TimeUs time_us = 4'000'000;
};

// The limits for an engine of `config`: up to its longest prefill step. If not all keys and values
// are retained, that step holds one complete prompt, regardless of the token budget (StepBoundsOf).
// The profile may end earlier: when its time is over or, with retention kAll, at the capacity of
// the blocks.
CostProfileLimits ProfileLimitsOf(const SchedulerConfig& config);

// Measures a few steps of all kinds, from short to long, enough for FitCosts. Some rows begin
// behind half the context, or behind half of the blocks' capacity. Returns at least three samples
// if steps have more than one token. Returns none if all keys and values are retained and there are
// fewer blocks than rows in a step.
std::vector<CostSample> ProfileCosts(StepProfiler& profiler, const Clock& clock,
                                     const CostProfileLimits& limits);

}  // namespace skein
