#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "sched/step.h"

namespace skein {

// A step that is being filled and has a prompt in it.
struct StepSoFar {
  std::span<const StepRow> prefills;
  int64_t num_tokens = 0;  // of decodes too
  TimeUs now_us = 0;
};

// How much prefill work goes into one step, within the token budget. The first prompt of a step is
// never asked about. A policy is named in one list (sched/policies.cc). Deterministic. Not
// thread-safe.
class BatchingPolicy {
 public:
  static constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

  virtual ~BatchingPolicy() = default;

  // A step begins, without rows.
  virtual void BeginStep() {}
  // False: a step has one prompt.
  virtual bool TakesMore() const { return true; }
  // Further started prompts may follow the first one.
  virtual bool TakesMoreStarted() const { return false; }
  // The most missing prompt tokens of a further waiting request that joins; below 1: none joins.
  virtual int64_t MaxTokens(const StepSoFar& step) = 0;
  // True: a waiting request with more tokens than MaxTokens is passed over, and the next in order
  // that fits joins. False: it ends the step.
  virtual bool SkipsToFit() const { return false; }
  // Decisions depend on the cost model, so that a profile pays.
  virtual bool NeedsCosts() const { return false; }
};

}  // namespace skein
