#pragma once

#include <atomic>
#include <memory>

#include "sched/plan.h"

namespace skein {

// A plan being executed. The caller of Executor::Begin owns it.
class Task {
 public:
  virtual ~Task() = default;
};

enum class TaskStatus { kDone, kPreempted };

// The device, as the engine sees it. One thread calls its functions.
class Executor {
 public:
  virtual ~Executor() = default;

  // Sets up a task; runs no operator. `plan` must outlive the task.
  virtual std::unique_ptr<Task> Begin(const StepPlan& plan) = 0;

  // Runs operators until the task is done or `preempt` reads true at a boundary. A preempted task
  // keeps its state; resuming it changes no bit of its results.
  virtual TaskStatus Resume(Task& task, const std::atomic<bool>& preempt) = 0;

  // REQUIRES: the task is done. Valid until the task is destroyed.
  virtual const StepResults& Results(const Task& task) const = 0;
};

}  // namespace skein
