#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "sched/cost_model.h"
#include "sched/plan.h"
#include "sched/prefix/shared_prefix.h"
#include "sched/sequence.h"

namespace skein {

// A row of a step: it belongs to a sequence or to a shared prefix.
struct StepRow {
  Sequence* sequence = nullptr;
  int32_t num_tokens = 0;
  SharedPrefix* prefix = nullptr;

  std::span<const TokenId> tokens() const { return prefix ? prefix->tokens : sequence->tokens; }
  int32_t begin() const { return prefix ? prefix->num_computed : sequence->num_computed; }
  const SequenceBlocks& blocks() const { return prefix ? prefix->blocks : sequence->blocks; }
  bool finishes() const { return begin() + num_tokens == std::ssize(tokens()); }
};

// The typed plans of a step. Executors point into them, so their addresses never change.
struct StepPlans {
  StepPlan oneshot = OneShotPlan{};
  StepPlan decode = DecodePlan{};
  StepPlan mixed = MixedPlan{};
};

//            Begin            rows are planned            Complete
//   (fresh) -------> kPlanned ----------------> kInFlight ----------> kFinished
//                                                |     ^
//                                        Suspend |     | Resume
//                                                v     |
//                                               kSuspended ---> dropped
enum class StepState { kPlanned, kInFlight, kSuspended, kFinished };

// One pass of the model, a value: planned, running, suspended and finished steps have the same
// type. A suspended step's rows keep their blocks. Vectors keep their memory.
struct Step {
  // kFirstKey goes before every request, kLastKey behind every request.
  static constexpr SequenceKey kFirstKey = {
      {std::numeric_limits<int32_t>::min(), std::numeric_limits<int64_t>::min()}, 0, 0};
  static constexpr SequenceKey kLastKey = {
      {std::numeric_limits<int32_t>::max(), std::numeric_limits<int64_t>::max()},
      std::numeric_limits<uint64_t>::max(),
      0};

  int64_t id = 0;
  StepState state = StepState::kFinished;
  std::vector<StepRow> prefills;
  std::vector<StepRow> decodes;
  std::unique_ptr<StepPlans> plans = std::make_unique<StepPlans>();
  const StepPlan* plan = nullptr;  // one of `plans`
  StepWork work;                   // set if the cost model is known
  TimeUs resumed_us = 0;           // start of the latest run
  TimeUs ran_us = 0;               // total time of earlier runs
  TimeUs was_suspended_us = 0;     // total time of earlier suspensions
  TimeUs suspended_since_us = 0;   // start of the latest suspension

  bool in_flight() const { return state == StepState::kInFlight; }
  // Whether the step has decodes with a TPOT deadline: its prefills were cut so that it ends in
  // time for them.
  bool KeepsTpot() const;
  bool empty() const { return prefills.empty() && decodes.empty(); }
  TimeUs RanUs(TimeUs now_us) const { return ran_us + now_us - resumed_us; }
  // REQUIRES: the step is suspended.
  TimeUs SuspendedUs(TimeUs now_us) const { return was_suspended_us + now_us - suspended_since_us; }

  // Makes this an empty step that is being planned.
  void Begin(TimeUs now_us);
  void Suspend(TimeUs now_us);
  void Resume(TimeUs now_us);

  // The key of the most urgent live request that waits for a prefill row; kLastKey if there is
  // none.
  SequenceKey Key() const;
  // Whether all requests that wait for the step's rows have ended.
  bool IsDead() const;
  int64_t NumPrefillTokens() const;
  // The live request with the most tokens in the step, the last of several. Null: all have ended.
  RequestRecord* Largest() const;

  // Calls fn(sequence) for the sequences that wait for a prefill row.
  template <typename Fn>
  void ForEachPrefilling(const Fn& fn) const {
    for (const StepRow& row : prefills) {
      if (row.prefix == nullptr) {
        fn(row.sequence);
      } else {
        for (Sequence* member : row.prefix->members) fn(member);
      }
    }
  }
};

}  // namespace skein
