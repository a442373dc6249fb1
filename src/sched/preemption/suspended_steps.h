#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sched/admission.h"
#include "sched/context.h"
#include "sched/order/ranks.h"
#include "sched/prefix/shared_prefixes.h"
#include "sched/step.h"

namespace skein {

// The steps that were stopped and go on later; their number is bounded. Their requests keep their
// blocks while they are suspended. The requests of a dropped step are planned again, from the
// beginning of that step. Not thread-safe.
class SuspendedSteps {
 public:
  SuspendedSteps(const SchedulerContext& context, Ranks* ranks, SharedPrefixes* prefixes,
                 Admission* admission);

  // Suspends the step in flight; `*step` becomes an unused step.
  void Suspend(Step* step, TimeUs now_us);
  // Moves the suspended step to `*step`, and keeps the old `*step` for reuse. REQUIRES: `*step` has
  // no rows.
  void Resume(const Step* suspended, Step* step, TimeUs now_us);
  // Drops the step in flight, which is dead; `*step` becomes an unused step.
  void Drop(Step* step);
  // Drops the suspended steps that are dead.
  void DropDead();
  // Drops the least urgent suspended steps, until there is room for the state of `step`, which
  // begins. A step of decodes alone is never suspended and has its own small room. If a dropped
  // step's requests are computed again in a later step, the time for which it was suspended counts
  // towards that step's bound.
  void MakeRoomFor(Step* step, TimeUs now_us);
  void Clear() { steps_.clear(); }

  bool Contains(int64_t step_id) const;
  const std::vector<Step>& steps() const { return steps_; }
  // The key of a suspended step. A step that has been suspended for max_suspended_us goes first.
  SequenceKey KeyOf(const Step& step, TimeUs now_us) const;
  // The most urgent suspended step; null: there is none.
  const Step* First(TimeUs now_us) const;
  // The suspended step that keeps the TPOT deadline of decodes; null if there is none. It makes way
  // for one prompt and then goes on before anything else, since its decodes wait, too.
  const Step* KeepingTpot() const;
  // The time at which the first step reaches max_suspended_us; nullopt if no step is suspended.
  std::optional<TimeUs> NextBoundUs() const;

  // Aborts unless exactly the rows of these steps and of `current` are marked as in a step.
  void CheckIntegrity(const Step& current) const;

 private:
  Step TakeFree(TimeUs now_us);
  void DropAt(size_t index, std::span<const StepRow> current);
  void Undo(const Step& step, std::span<const StepRow> current);

  const SchedulerConfig& config_;
  const CostModel* const cost_;
  const RequestTable* const table_;
  EngineStats* const stats_;
  Ranks* const ranks_;
  SharedPrefixes* const prefixes_;
  Admission* const admission_;
  // At most max_suspended_steps; one more while decodes run alone or while a step is being chosen.
  std::vector<Step> steps_;
  std::vector<Step> free_;  // unused steps, which keep the memory of their vectors
};

}  // namespace skein
