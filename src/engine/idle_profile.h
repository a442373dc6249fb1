#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "engine/cost_profile.h"
#include "engine/decode_profile.h"
#include "kv/block_manager.h"
#include "skein/config.h"

namespace skein {

// The profiles that an engine takes in moments without work, so that they delay no start: that of
// costs, and that of decodes if the decode set needs it. One step a call; the engine serves
// requests between two calls. Not thread-safe.
class IdleProfile {
 public:
  // `profiler` measures on the engine's executor, with all blocks. `clock` and the executor outlive
  // the profile.
  IdleProfile(StepProfiler profiler, const Clock* clock, const SchedulerConfig& config);
  IdleProfile(const IdleProfile&) = delete;
  IdleProfile& operator=(const IdleProfile&) = delete;

  // From now on, overwrites free blocks and states alone. Valid until `blocks` gives one away.
  void UseFreeMemory(BlockManager* blocks) { profiler_.UseFreeMemory(most_blocks_, blocks); }

  bool done() const { return costs_.done() && (!decodes_ || decodes_->done()); }
  // Measures the next step. Returns false if `stop` read true before it was measured: the next call
  // begins it again. REQUIRES: done() is false.
  bool Measure(const std::atomic<bool>& stop);

  // The fits of the complete profile. Zeros if too little was measured, since the prefix cache held
  // the memory.
  CostFit Costs() const;
  DecodeFit DecodeCosts() const;

 private:
  StepProfiler profiler_;
  CostProfile costs_;
  std::optional<DecodeProfile> decodes_;
  int32_t most_blocks_ = 0;  // that a step takes
};

}  // namespace skein
