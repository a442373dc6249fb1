#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "sched/step.h"

namespace skein {

// A step that is being filled, and has at least one prompt.
struct StepSoFar {
  std::span<const StepRow> prefills;
  int64_t num_tokens = 0;  // of prompts and decodes
  TimeUs now_us = 0;
};

// Decides how much prefill work goes into one step, within the token budget. The first prompt of a
// step always joins: the policy is not asked. Each policy has an entry in one list
// (sched/policies.cc). Deterministic. Not thread-safe.
class BatchingPolicy {
 public:
  static constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

  virtual ~BatchingPolicy() = default;

  // A step without rows begins.
  virtual void BeginStep() {}
  // If false, a step has one prompt.
  virtual bool TakesMore() const { return true; }
  // Whether further started prompts may follow the first prompt.
  virtual bool TakesMoreStarted() const { return false; }
  // The most missing prompt tokens that a further waiting request may have to join the step; if
  // below 1, none joins.
  virtual int64_t MaxTokens(const StepSoFar& step) = 0;
  // If true, a waiting request with more tokens than MaxTokens is passed over, and the next request
  // in order that fits joins. If false, that request ends the step.
  virtual bool SkipsToFit() const { return false; }
  // Whether any waiting request is left for a later step while a row of this step computes its
  // prefix (SchedulerConfig::max_prefix_wait_us). One that arrived with others (RequestGroup)
  // always is.
  virtual bool WaitsForPrefixes() const { return false; }
  // Whether decisions depend on the cost model, so that measuring its costs (a profile run)
  // improves them.
  virtual bool NeedsCosts() const { return false; }
};

}  // namespace skein
