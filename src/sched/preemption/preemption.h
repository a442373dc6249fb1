#pragma once

#include <cstdint>
#include <optional>

#include "sched/admission.h"
#include "sched/context.h"
#include "sched/order/ranks.h"
#include "sched/preemption/suspended_steps.h"
#include "sched/step.h"

namespace skein {

// Whether prefills ever stop before their end for more urgent work.
bool StopsSteps(const SchedulerConfig& config);

// Decides when the step in flight makes way for more urgent work. Also decides how decodes with a
// TPOT deadline get their tokens beside prefills (FlowPrefill, section 4):
//
//            Plan                     Complete
//   (none) --------> in flight ------------------------> (none)
//                     |    ^
//          Reconsider |    | Plan: nothing is more urgent
//                     v    |
//                   suspended -------> dropped: its requests have ended, or too many are suspended
//
// Not thread-safe.
class Preemption {
 public:
  // `step` is the step in flight. It outlives this object.
  Preemption(const SchedulerContext& context, const Ranks* ranks, const Admission* admission,
             const SuspendedSteps* suspended, const Step* step);

  // Whether the step in flight must stop for more urgent work.
  bool MakesWay(TimeUs now_us) const;
  // Whether a step with this key makes way for more urgent work, or stays suspended because of it.
  bool Yields(const SequenceKey& key) const;
  // Whether the next step is one of decodes alone, since some decodes are due.
  bool DecodesAreDue(TimeUs now_us) const;
  // Tokens of prompts that the next step should compute beside decodes with a TPOT deadline. 0:
  // these decodes take their own steps.
  int32_t MixedTokens(TimeUs now_us) const;
  // Tokens of the prompt for which a step that keeps the TPOT deadline of decodes has made way;
  // nullopt: there is no such prompt.
  std::optional<int32_t> NextPromptTokens() const;

  // The time at which the result of MakesWay may next change by the clock alone.
  std::optional<TimeUs> NextTime() const;

  // A step has ended.
  void NoteStep(TimeUs now_us);

 private:
  std::optional<TimeUs> NextDecodeUs() const;
  std::optional<TimeUs> NextBoundUs() const;
  bool StarvesDecodes(TimeUs now_us) const;
  const Sequence* NextPrompt() const;
  bool GoesBeforeMixed(TimeUs now_us) const;
  bool NeedsStop(TimeUs now_us) const;
  bool MoreUrgentWaits(const SequenceKey& than) const;
  // Whether the step in flight was suspended for max_suspended_us. Only decodes with a TPOT
  // deadline stop it then.
  bool StopsNoMore() const { return step_.was_suspended_us >= config_.preemption.max_suspended_us; }

  const SchedulerConfig& config_;
  const CostModel* const cost_;
  const RequestTable* const table_;
  const OrderPolicy* const order_;
  const Ranks* const ranks_;
  const Admission* const admission_;
  const SuspendedSteps* const suspended_;
  const Step& step_;
  const bool stops_steps_;
  TimeUs decode_step_us_ = 0;  // time of the last step of decodes alone
  TimeUs decoded_us_ = 0;      // when that step ended
  TimeUs prompts_ran_us_ = 0;  // time of the last step with prompts
  TimeUs decodes_ran_us_ = 0;  // time of the steps of decodes alone since then
};

}  // namespace skein
