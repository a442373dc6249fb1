#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "sched/plan.h"

namespace skein {

// A plan being executed. The caller of Executor::Begin owns it.
class Task {
 public:
  virtual ~Task() = default;
};

enum class TaskStatus { kDone, kPreempted };

// The device, as the engine sees it. One thread calls its functions. Begin, Resume and Results may
// throw std::bad_alloc: the task, if there is one, is then destroyed, and the executor goes on.
class Executor {
 public:
  virtual ~Executor() = default;

  // The number of slots for the states that rows name (RowState); 0: rows have no states.
  virtual int32_t num_states() const { return 0; }

  // Makes the plan's copies to and from the host, or gives them to the device ahead of anything
  // else: nothing may fail before that, since the scheduler never plans them again. Then sets up a
  // task; runs no operator. `plan` must outlive the task.
  virtual std::unique_ptr<Task> Begin(const StepPlan& plan) = 0;

  // Runs operators until the task is done or `preempt` reads true at a boundary. A preempted task
  // keeps its state; resuming it later changes no bit of its results.
  virtual TaskStatus Resume(Task& task, const std::atomic<bool>& preempt) = 0;

  // REQUIRES: the task is done. The results are valid until the task is destroyed.
  virtual const StepResults& Results(const Task& task) const = 0;
};

// For plans that are made by hand: the states of a row that begins at `begin`, if its sequence
// keeps its state in slot `slot`. If there are fewer slots, it is the remainder of `slot`.
inline RowState OwnState(const Executor& executor, int64_t slot, int32_t begin) {
  if (executor.num_states() == 0) return {};
  const auto state = static_cast<StateId>(slot % executor.num_states());
  return {.from = begin > 0 ? state : kNoState, .to = state};
}

}  // namespace skein
