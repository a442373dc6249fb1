#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "engine/executor.h"
#include "kv/block_manager.h"
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

// Times steps directly on an executor, before an engine starts or while it has no step. The tokens
// are arbitrary. The contents of blocks and states are overwritten: of all from 0 on, until
// UseFreeMemory names others.
class StepProfiler {
 public:
  // `executor` and `clock` outlive the profiler. `output` is the output of each row: a greedy draw
  // for generation, else a read. `retention` is that of the executor.
  StepProfiler(Executor* executor, const Clock* clock, int32_t vocab_size, int32_t num_kv_blocks,
               OutputSpec output, Retention retention = Retention::kAll);

  // From now on, overwrites at most `most_blocks` blocks, and states, that are free. Valid until
  // `blocks` gives one of them away. Changes no later choice of `blocks`. O(blocks).
  void UseFreeMemory(int32_t most_blocks, BlockManager* blocks);

  // Whether memory suffices. With retention kAll, all tokens of the rows need blocks; otherwise
  // their cached tokens do. (The executor has its own memory for tokens without a block.)
  bool Fits(std::span<const ProfileRow> rows) const;
  bool Fits(const ProfileDecodes& decodes) const;

  // Microseconds of one step of these rows, measured once. REQUIRES: the rows are not empty, fit
  // the executor's step, and Fits(rows).
  double MeasureUs(std::span<const ProfileRow> rows);
  // The same; nullopt if `stop` reads true at a boundary before the step's end.
  std::optional<double> TryUs(std::span<const ProfileRow> rows, const std::atomic<bool>& stop);
  // The least of `runs` measurements by MeasureUs, after one measurement that is not counted.
  double LeastUs(std::span<const ProfileRow> rows, int runs);
  double MedianUs(std::span<const ProfileRow> rows, int runs);  // `runs` > 0

  // Microseconds of one step of decodes alone, measured once; nullopt as above. REQUIRES: the
  // profiler's rows draw; the rows fit the executor's step, and Fits(decodes); shared_tokens is a
  // multiple of kBlockTokens; own_tokens, num_groups and rows_per_group are at least 1.
  std::optional<double> TryDecodesUs(const ProfileDecodes& decodes, const std::atomic<bool>& stop);

  int32_t num_kv_blocks() const { return static_cast<int32_t>(blocks_.size()); }
  bool draws() const { return std::holds_alternative<GenerateSpec>(output_); }
  bool retains_all() const { return retention_ == Retention::kAll; }

 private:
  RowState StateOf(int64_t slot, int32_t begin) const;
  std::optional<double> RunUs(const StepPlan& step, const std::atomic<bool>& stop);

  Executor* const executor_;
  const Clock* const clock_;
  const int32_t vocab_size_;
  std::vector<BlockId> blocks_;  // that may be overwritten
  std::vector<StateId> states_;
  const OutputSpec output_;
  const Retention retention_;
};

// The time of a profile at the start that a longer one follows once the engine is idle.
inline constexpr TimeUs kFirstProfileUs = 40'000;

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
// behind half the context, or behind half of the blocks' capacity. Steps that do not fit the
// profiler's memory at their turn are left out. There are at least three samples if steps have more
// than one token. There are none if all keys and values are retained and there are fewer blocks
// than rows in a step. Not thread-safe.
class CostProfile {
 public:
  // `profiler` and `clock` outlive the profile.
  CostProfile(StepProfiler* profiler, const Clock* clock, const CostProfileLimits& limits);

  bool done() const { return next_ == steps_.size(); }
  // Measures the next step. Returns false if `stop` read true before it was measured: the next call
  // begins it again. REQUIRES: done() is false.
  bool Measure(const std::atomic<bool>& stop);
  const std::vector<CostSample>& samples() const { return samples_; }
  // Whether a step was left out because the profiler's memory did not suffice.
  bool lacked_memory() const { return lacked_memory_; }

 private:
  bool IsInTime(const StepWork& work) const;
  std::optional<double> LeastOfTwoUs(std::span<const ProfileRow> rows,
                                     const std::atomic<bool>& stop);

  StepProfiler* const profiler_;
  const Clock* const clock_;
  const TimeUs limit_us_;
  TimeUs used_us_ = 0;  // interrupted measurements included
  std::vector<std::vector<ProfileRow>> steps_;
  size_t next_ = 0;  // in steps_
  bool lacked_memory_ = false;
  std::vector<CostSample> samples_;
};

// The samples of a complete CostProfile.
std::vector<CostSample> ProfileCosts(StepProfiler& profiler, const Clock& clock,
                                     const CostProfileLimits& limits);

}  // namespace skein
