#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "kv/block_manager.h"
#include "sched/admission.h"
#include "sched/batching/mixed_pace.h"
#include "sched/completion.h"
#include "sched/config.h"
#include "sched/context.h"
#include "sched/cost_model.h"
#include "sched/order/ranks.h"
#include "sched/plan.h"
#include "sched/policies.h"
#include "sched/prediction/ttft_predictor.h"
#include "sched/preemption/preemption.h"
#include "sched/preemption/suspended_steps.h"
#include "sched/prefix/shared_prefixes.h"
#include "sched/record/observer.h"
#include "sched/requests/request_table.h"
#include "sched/sample_output.h"
#include "sched/step.h"
#include "sched/step_builder.h"
#include "skein/engine.h"
#include "skein/request.h"

namespace skein {

// The fate of the step in flight, as a round decides it.
enum class StepFate {
  kGoesOn,
  kSuspended,  // the step keeps its state; Plan returns it again when it may go on
  kDropped,    // the step's state is useless: its requests have ended
};

// Decides which rows are computed next. A pure state machine: events in, plans and outputs out; no
// thread, no clock, no tensor.
//
//   Arrive, Cancel, CancelSample --> Plan --> [executed elsewhere] --> Complete --> TakeOutputs
//                                     ^                                   |
//                                     +-----------------------------------+
//
// With a sharing rule that preempts, Reconsider is also called, while a step is being executed.
// After that, Plan may begin another step or return a suspended step again
// (sched/preemption/preemption.h).
//
// The class is a facade: each part owns its state. Three policies, made from lists, make the
// choices.
//
//   RequestTable    all requests; their running and waiting sequences, in order
//   Ranks           keeps the order's ranks while cache, time and costs change
//   SharedPrefixes  prefixes that several requests share and that are computed once
//   Admission       slots and KV blocks: what may begin, what is reserved, what is given back
//   StepBuilder     fills a step within the token budget
//   SuspendedSteps  steps that were stopped; Preemption decides when one stops
//   Completion      what results mean for requests; the outputs
//
// Not thread-safe. A steady decode step allocates nothing.
class Scheduler {
 public:
  // Observers outlive the scheduler. REQUIRES: `config` comes from MakeSchedulerConfig; the lists
  // contain the policies that `config` names.
  explicit Scheduler(const SchedulerConfig& config, std::vector<SchedulerObserver*> observers = {},
                     const PolicyLists& lists = BuiltInPolicies());
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Returns ok if a request can run to its end when it is alone. Fails with kInvalidArgument,
  // naming the field and the numbers.
  static Status CheckFits(const SchedulerConfig& config, const Request& request);

  // Bounds the time of steps with decodes and prompts (sched/batching/mixed_pace.h); 0: no bound.
  // Models whose prompts may have to run whole have no bound.
  void set_mixed_step_us(TimeUs us);
  // Bounds the wait of requests without a timeout; 0: no bound. A request presses once it has been
  // there for half of its bound, and goes before requests that do not press (Ranks). With sharing
  // kWhole, decodes get a share of the time while a decode's request presses.
  void set_max_wait_us(TimeUs us) { ranks_.set_max_wait_us(us); }

  // From now on, the policies predict by these costs of the device. Fits of zeros leave the costs
  // that were known. REQUIRES: empty().
  void AdoptProfile(const CostFit& cost, const DecodeFit& decode_cost, TimeUs now_us);

  // REQUIRES: CheckFits is ok; `id` is new and below 2^47.
  void Arrive(RequestId id, Request request, TimeUs now_us);
  // Ends a request, or one sample of it, with kCancelled. Sequences outside the step in flight free
  // their blocks at once; sequences in that step free them in Complete. Unknown ids and ended
  // samples are ignored.
  void Cancel(RequestId id, TimeUs now_us);
  void CancelSample(RequestId id, int32_t sample, TimeUs now_us);

  // The next step, or null if there is nothing to do. Valid until Complete or FailAll, or until the
  // step is neither in flight nor suspended. REQUIRES: the last plan has been completed, suspended
  // or dropped.
  const StepPlan* Plan(TimeUs now_us);
  // The id of the step that Plan returned last. A suspended step that goes on keeps its id.
  int64_t step_id() const { return step_id_; }
  bool IsSuspended(int64_t step_id) const { return suspended_.Contains(step_id); }
  // Whether the step in flight, which has stopped at a boundary, makes way for more urgent work.
  // REQUIRES: a plan is being executed.
  StepFate Reconsider(TimeUs now_us);
  // `*results` are the results of the plan. Their contents are moved out; the vectors keep their
  // sizes. REQUIRES: a plan is being executed.
  void Complete(StepResults* results, TimeUs now_us);
  // The step in flight cannot be computed: its largest request ends with kError, and the others go
  // on from their tokens before it. Observers do not hear of it. REQUIRES: a plan is being
  // executed.
  void FailStep(const Status& status, TimeUs now_us);
  // Ends every request with kError. A plan being executed is abandoned.
  void FailAll(const Status& status, TimeUs now_us);

  // The outputs since the last call, in order. Valid until the next call of any function.
  std::span<SampleOutput> TakeOutputs() { return completion_.TakeOutputs(); }

  // The time at which the next round is needed if no event comes earlier. At that time a rank
  // changes, a bounded wait ends, or a suspended step reaches its bound. It can also be the time to
  // stop a prefill for a decode's next token.
  std::optional<TimeUs> NextRoundUs() const;

  // Calls `visit` with the KV blocks and the prefix cache. `visit` may read, cache and evict
  // prefixes, and keeps no reference. May be called between rounds, also while a step is in flight
  // or suspended.
  void VisitBlocks(const std::function<void(BlockManager*)>& visit) { visit(&blocks_); }

  bool empty() const { return table_.empty(); }
  // Requests that have never been scheduled.
  size_t num_queued() const { return table_.waiting().num_new(); }
  int64_t num_queued_tokens(ExecutionClass of_class) const {  // of their prompts
    return table_.waiting().num_new_tokens(of_class);
  }
  int64_t queued_budget() const { return table_.waiting().new_budget(); }  // of Decode requests
  // Whether the request exists and has never been scheduled.
  bool IsQueued(RequestId id);
  // Counters of steps, tokens and requests, and the gauges. The engine fills in times and rounds.
  EngineStats Stats() const;
  // The requests and the prefix cache, for people. O(n log n) for n requests and blocks.
  EngineView View(TimeUs now_us) const;

  // Aborts unless all structures agree. O(blocks + sequences).
  void CheckIntegrity() const;

 private:
  // Fills the step of this round, or returns the suspended step that goes on in its place.
  // `keeping_tpot`: the result of SuspendedSteps::KeepingTpot.
  const Step* FillStep(const Step* keeping_tpot, TimeUs now_us);
  bool AddDueDecodes(TimeUs now_us);
  const StepPlan* BeginStep(TimeUs now_us);
  const StepPlan* ResumeStep(const Step* suspended, TimeUs now_us);
  void ObserveStep(TimeUs now_us);
  void CountStep();
  void Sweep();

  const SchedulerConfig config_;
  const std::vector<SchedulerObserver*> observers_;
  BlockManager blocks_;
  CostModel cost_;
  EngineStats stats_;
  const PolicyObjects policies_;
  RequestTable table_;
  const SchedulerContext context_;  // points to the members above
  Ranks ranks_;
  SharedPrefixes prefixes_;
  Admission admission_;
  Step step_;  // being planned or executed
  StepBuilder builder_;
  SuspendedSteps suspended_;
  Preemption preemption_;
  Completion completion_;
  TtftPredictor predictor_;
  MixedPace pace_;
  const bool hashes_prompts_;
  int64_t step_id_ = 0;    // the id of the step that Plan returned last
  int64_t num_steps_ = 0;  // steps that have started
};

}  // namespace skein
