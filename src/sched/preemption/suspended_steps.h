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

// The steps that were stopped and go on later: a bounded set. Their requests keep their blocks
// meanwhile. The requests of a dropped step are planned anew, from the beginning of that step. Not
// thread-safe.
class SuspendedSteps {
 public:
  SuspendedSteps(const SchedulerContext& context, Ranks* ranks, SharedPrefixes* prefixes,
                 Admission* admission);

  // Takes the step in flight over; `*step` becomes a free one.
  void Suspend(Step* step, TimeUs now_us);
  // Moves one of this set's steps to `*step`, which it takes back. REQUIRES: `*step` has no rows.
  void Resume(const Step* suspended, Step* step, TimeUs now_us);
  // Drops the step in flight, which is dead; `*step` becomes a free one.
  void Drop(Step* step);
  // Drops the suspended steps that are dead.
  void DropDead();
  // Makes room for the state of the step that begins: drops the least urgent ones. A step of
  // decodes alone is never suspended and has its own room, a small one. The time that dropped steps
  // were suspended counts towards the bound of the step that computes their requests again.
  void MakeRoomFor(Step* step, TimeUs now_us);
  void Clear() { steps_.clear(); }

  bool Contains(int64_t step_id) const;
  const std::vector<Step>& steps() const { return steps_; }
  // The key of a suspended step. A step that has been suspended for max_suspended_us goes first.
  SequenceKey KeyOf(const Step& step, TimeUs now_us) const;
  // The most urgent one; null: none is suspended.
  const Step* First(TimeUs now_us) const;
  // The step that keeps the TPOT of decodes; null if there is none. It makes way for one prompt and
  // then goes on before anything else, since its decodes wait with it.
  const Step* KeepingTpot() const;
  // The time at which the first step reaches max_suspended_us; nullopt if no step is suspended.
  std::optional<TimeUs> NextBoundUs() const;

  // Aborts unless the rows of these steps and of `current` are those that are marked.
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
  // At most max_suspended_steps; one more while decodes run alone or a step is being chosen.
  std::vector<Step> steps_;
  std::vector<Step> free_;  // keep the memory of their vectors
};

}  // namespace skein
