#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "kv/block_manager.h"
#include "kv/recent_prefixes.h"
#include "sched/batching/slo_batch.h"
#include "sched/config.h"
#include "sched/cost_model.h"
#include "sched/decode_set/dynamic_batch.h"
#include "sched/decode_set/flock.h"
#include "sched/observer.h"
#include "sched/order/fair_queue.h"
#include "sched/order/jct_order.h"
#include "sched/order/slack_order.h"
#include "sched/plan.h"
#include "sched/prefix/prefix_watch.h"
#include "sched/prefix/trunk.h"
#include "sched/sequence.h"
#include "sched/step.h"
#include "sched/waiting_sets.h"
#include "skein/engine.h"
#include "skein/request.h"

namespace skein {

// News of one sample: a token, log-probabilities of its prompt, what was read, its end.
struct SampleOutput {
  RequestId request = 0;
  int32_t sample = 0;
  std::optional<OutputToken> token;
  std::vector<PromptLogprob> prompt_logprobs;
  std::optional<ReadValues> read;
  std::optional<FinishReason> finish;
  Status status;  // not ok exactly with kError
  int32_t cached_tokens = 0;
  RequestTimes times;
};

// What a round that looks at the step in flight decides.
enum class StepFate {
  kGoesOn,
  kSuspended,  // it keeps its state; Plan names it again when its turn has come
  kDropped,    // its state is of no more use: nobody waits for it, or it is to be computed again
};

// Decides what is computed next. A pure state machine: events in, plans and outputs out; no thread,
// no clock, no tensor.
//
//   Arrive, Cancel, CancelSample --> Plan --> [executed elsewhere] --> Complete --> TakeOutputs
//                                     ^                                   |
//                                     +-----------------------------------+
//
// With a sharing that preempts, and while a step is being executed: Reconsider, after which Plan
// may begin another step or name a suspended one again (scheduler_preempt.cc).
//
// Each plan holds, within the token budget, one token of every running sequence and then chunks of
// prompts: those begun first (by deadline, orders that know one: the most urgent first), then
// waiting ones in order. OneShot requests take no decode slot, so
// they pass by requests that wait for one; nothing passes by a request that waits for blocks, but
// for OneShot requests where forests are on, whose blocks are free again when their step is done.
// A running decode that finds no free block takes blocks from others: from the youngest.
//
// OneShot work never keeps a block from Decode work (ReclaimForDecodes, DecodeReserve): what it
// holds from step to step, the prefixes that requests share (sched/prefix/trunk.h) and prompts of
// which a part is computed, is given up where a running decode, or a waiting one with a free slot,
// lacks blocks; and it takes none that the next waiting one could have. Not thread-safe. A steady
// decode step allocates nothing.
class Scheduler {
 public:
  // Observers outlive the scheduler. REQUIRES: `config` comes from MakeSchedulerConfig.
  explicit Scheduler(const SchedulerConfig& config, std::vector<SchedulerObserver*> observers = {});
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Ok if a request can run to its end when it is alone. Fails with kInvalidArgument, naming the
  // field and the numbers.
  static Status CheckFits(const SchedulerConfig& config, const Request& request);

  // REQUIRES: CheckFits is ok; `id` is new and below 2^48.
  void Arrive(RequestId id, Request request, TimeUs now_us);
  // Ends a request, or one sample of it, with kCancelled; what is not being executed right now
  // frees its blocks at once, the rest in Complete. Unknown ids and ended samples are ignored.
  void Cancel(RequestId id, TimeUs now_us);
  void CancelSample(RequestId id, int32_t sample, TimeUs now_us);

  // The next step, or null if there is nothing to do. Valid until Complete or FailAll, or until the
  // step is neither in flight nor suspended. REQUIRES: the last plan has been completed, suspended
  // or dropped.
  const StepPlan* Plan(TimeUs now_us);
  // Names the step that Plan returned last: the same for a suspended one that goes on.
  int64_t step_id() const { return step_id_; }
  bool IsSuspended(int64_t step_id) const;
  // Whether the step in flight, which has stopped at a boundary, is to make way for what has become
  // more urgent. REQUIRES: a plan is being executed.
  StepFate Reconsider(TimeUs now_us);
  // `*results`: those of the plan; what they hold is moved out, the vectors keep their sizes.
  // REQUIRES: a plan is being executed.
  void Complete(StepResults* results, TimeUs now_us);
  // Ends every request with kError. A plan being executed is abandoned.
  void FailAll(const Status& status, TimeUs now_us);

  // The outputs since the last call, in order. Valid until the next call of any function.
  std::span<SampleOutput> TakeOutputs();

  // When, with no further event, a round is next worth running: a slack turns negative, a bounded
  // wait ends, a step has been suspended for as long as it may, a decode's next token will be due
  // for which a prefill stops.
  std::optional<TimeUs> NextMoment() const;

  bool empty() const { return requests_.empty(); }
  // Requests that have never been scheduled.
  size_t num_queued() const { return waiting_.num_new(); }
  // Counters of steps, tokens and requests, and the gauges. Times and rounds are the engine's.
  EngineStats Stats() const;

  // Aborts unless all structures agree. O(blocks + sequences).
  void CheckIntegrity() const;

 private:
  enum class Planned {
    kYes,
    kLater,     // it waits for a row of this step to compute its prefix
    kNoBlocks,  // now
    kNoTokens,  // left in this step
  };

  // Results of rows that have not been completed yet, or of one row.
  struct ResultSpans {
    std::span<DrawResult> draws;
    std::span<ReadResult> reads;
    std::span<PromptLogprobsResult> prompt_logprobs;
  };

  // Planning (scheduler_plan.cc).
  void PlanDecodes(bool all);
  bool PlanDueDecodes(TimeUs now_us);
  bool FindDecodeBlock(Sequence* sequence);
  void Preempt(Sequence* sequence);
  void PlanPrefills(TimeUs now_us);
  void PlanBegun(TimeUs now_us);
  void AdmitWaiting(TimeUs now_us, const std::optional<SequenceKey>& bound);
  Sequence* NextOfBatch(bool want_oneshot, bool want_decode,
                        const std::optional<SequenceKey>& bound);
  bool GoesByOrder(const Sequence& first) const;
  Sequence* NextHead(bool want_oneshot, bool want_decode, const std::optional<SequenceKey>& bound);
  Sequence* NextOfFlock(int32_t max_tokens, const std::optional<SequenceKey>& bound);
  int32_t NumFreeSlots() const;
  const Sequence* ExpectedDecode();
  bool WillJoin(const Sequence& next, int32_t num_needed, int32_t num_blocks);
  Planned PlanHead(Sequence* head, TimeUs now_us);
  // Whether the step may take no further request's prefill work.
  bool StepIsFull() const {
    return config_.batching == Batching::kSingle && !step_.prefills.empty();
  }
  // Prompts of which a part is computed go one at a time, with what waits beside them.
  bool TakesNoMoreBegun() const {
    return config_.batching != Batching::kBudget && !step_.prefills.empty();
  }
  bool MayJoin(const Sequence& sequence) const;
  bool Admit(Sequence* sequence, TimeUs now_us);
  bool AttachBlocks(Sequence* sequence);
  // Whether its prompt is computed in one step, however long.
  bool RunsInOneStep(const Sequence& sequence) const {
    return sequence.request->whole || DiscardsKv(sequence);
  }
  bool DiscardsKv(const Sequence& sequence) const {
    return sequence.oneshot() && config_.retention != Retention::kAll;
  }
  SequenceBlocks::Hold HoldOf(const Sequence& sequence) const;
  int32_t NumMissing(const Sequence& sequence) const;
  bool HasRoomFor(const Sequence& sequence) const;
  // Whether a waiting request may join the step under batching `saturate`.
  bool StaysBelowSaturation(const Sequence& sequence) const {
    const int64_t num_taken = config_.max_num_batched_tokens - tokens_left_;
    return num_taken + NumMissing(sequence) <= SaturationTokens(cost_.fit());
  }
  void NoteAdmission(Sequence* sequence, TimeUs now_us);
  bool PlanChunk(Sequence* sequence);
  bool CompatibleWithStep(const Sequence& sequence) const;
  int32_t DecodeReserve();
  void ReclaimForDecodes();
  bool ReclaimOneShot();
  void EnterWaiting(Sequence* sequence);
  void LeaveWaiting(Sequence* sequence);
  PlanRow MakeRow(const StepRow& row);
  SequenceBlocks::Need NeedOf(const Sequence& sequence) const {
    return sequence.blocks.NeedOf(blocks_, sequence.tokens, sequence.max_cached_tokens());
  }
  void ReadFrom(Sequence* sequence, int32_t num_tokens);
  void DrawFrom(Sequence* sequence, int32_t num_tokens);
  const StepPlan* BuildPlan();

  // Preemption (scheduler_preempt.cc).
  bool StopsSteps() const {
    return Preempts(config_.sharing) && skein::StopsSteps(config_.granularity);
  }
  bool PrefersUrgentToBegun() const {
    if (Preempts(config_.sharing)) return config_.granularity != Granularity::kNone;
    return OrdersByDeadline();
  }
  // Decodes that ask for a rate do not wait for prefills: they take steps of their own, for which a
  // running prefill stops.
  bool TakesOwnSteps(const Sequence& sequence) const {
    return StopsSteps() && sequence.request->request.slo_tpot_us.has_value();
  }
  std::optional<TimeUs> NextDecodeUs() const;
  bool StarvesDecodes(TimeUs now_us) const;
  std::optional<TimeUs> NextBoundUs() const;
  // Whether the step in flight has made way for others for so long that only decodes with a rate
  // stop it.
  bool StopsNoMore() const { return step_.was_suspended_us >= config_.max_suspended_us; }
  const Sequence* NextPrompt() const;
  int32_t MixedTokens(TimeUs now_us) const;
  int32_t ExpressReserve() const;
  SequenceKey KeyOf(const Step& step, TimeUs now_us) const;
  const Step* FirstSuspended(TimeUs now_us) const;
  bool KeepsRate(std::span<const StepRow> decodes) const;
  bool GoesBeforeMixed(TimeUs now_us) const;
  const Step* SuspendedMixed() const;
  bool CouldBegin(const Sequence& sequence) const;
  bool MoreUrgentWaits(const SequenceKey& than) const;
  bool Yields(const SequenceKey& key) const;
  bool MakesWay(TimeUs now_us) const;
  void Suspend(TimeUs now_us);
  const StepPlan* ResumeStep(const Step* first, TimeUs now_us);
  void DropStep(const Step& step);
  Step TakeFreeStep();
  void DropSuspended(std::vector<Step>::iterator step);
  void DropDeadSteps();
  void BoundSuspended(TimeUs now_us);
  TimeUs SuspendedBefore() const;
  void MarkTrunks(std::span<const StepRow> current);
  bool InAnyStep(const RequestRecord& request) const;
  void CheckSuspended() const;
  void CheckWatched() const;

  // Shared prefixes (scheduler_forest.cc).
  void JoinTrunk(Sequence* head);
  const StepRow* LeaderOf(const Sequence& head, int32_t num_cached) const;
  bool WaitsForPrefix(Sequence* head, TimeUs now_us);
  bool WorthWaiting(const StepRow& leader, const Sequence& head, int32_t num_cached) const;
  void Inherit(Sequence* leader, const Sequence& peer);
  void FormTrunk(Sequence* head);
  bool PlanTrunk(Trunk* trunk);
  void Join(Sequence* sequence, Trunk* trunk);
  void LeaveTrunk(Sequence* sequence);
  bool ReclaimTrunk(const Trunk* except);
  void GiveUpTrunk(Trunk* trunk);
  void CompleteTrunk(const StepRow& row);
  void SweepTrunks();

  // Keys (scheduler_order.cc).
  bool OrdersByDeadline() const { return SlackOrder::Orders(config_.order); }
  // Whether the place of a waiting request, or what it is taken to cost, depends on the cache.
  bool Calibrates() const {
    return config_.order == Order::kSrjfCalibrated || config_.order == Order::kSlackEdf ||
           config_.order == Order::kLpm || config_.batching == Batching::kSloAware;
  }
  Urgency UrgencyOf(Sequence* sequence, TimeUs now_us);
  int64_t JctRankOf(const Sequence& sequence, int32_t num_cached) const;
  int64_t SlackRankOf(Sequence* sequence, int32_t num_cached, TimeUs now_us);
  int32_t NumCachedNow(const Sequence& sequence) const;
  // Of a prompt that runs or waits, at least one.
  int32_t NumMissingNow(const Sequence& sequence) const;
  bool IsWatched(const Sequence& sequence) const;
  void Recalibrate();
  void FollowMoments(TimeUs now_us);
  void HoldRanks();
  void ReleaseRanks(const Step& step, std::optional<TimeUs> left_us, TimeUs now_us);
  void OrderDepthFirst();
  void SetRank(RequestRecord* request, int64_t rank, int32_t num_missing);
  void Reorder(Sequence* sequence, int32_t num_cached, TimeUs now_us);
  void Relocate(Sequence* sequence, TimeUs now_us);
  void ObserveStep(TimeUs now_us);
  void RenewJctRanks(TimeUs now_us);
  void NotePrediction(const Sequence& sequence, TimeUs now_us);
  void ObserveDecodeSet(TimeUs now_us);

  // Completing.
  void CompleteRow(const StepRow& row, const ResultSpans& results, TimeUs now_us);
  void EmitPromptLogprobs(Sequence* sequence, std::span<PromptLogprobsResult> results);
  void FinishPrompt(Sequence* sequence, const ResultSpans& results, TimeUs now_us);
  void FinishRead(Sequence* sequence, ReadResult* result, TimeUs now_us);
  void FinishEmptyBudget(Sequence* sequence, TimeUs now_us);
  // Whether `token` after the `earlier` ones ends a sample.
  std::optional<FinishReason> FinishOf(const RequestRecord& request,
                                       std::span<const TokenId> earlier, TokenId token) const;
  void Fork(Sequence* carrier, int32_t sample, TokenId token);
  void EmitToken(RequestRecord* request, int32_t sample, OutputToken token,
                 std::optional<FinishReason> finish, TimeUs now_us);

  // Ending.
  SampleOutput& EndSample(RequestRecord* request, int32_t sample, FinishReason reason,
                          const Status& status, TimeUs now_us);
  void EndSequence(Sequence* sequence, SequenceState state);
  void FailRequest(RequestRecord* request, const Status& status, TimeUs now_us);
  void CancelLive(RequestRecord* request, int32_t sample, TimeUs now_us);
  void ReleaseSlots(Sequence* sequence, int32_t count);
  void NoteEnd(RequestRecord* request, int32_t sample);
  void ObserveEnd(const RequestRecord& request);
  void Sweep();
  SampleOutput& Emit(const RequestRecord& request, int32_t sample, bool now);
  void InsertRunning(Sequence* sequence);

  const SchedulerConfig config_;
  const std::vector<SchedulerObserver*> observers_;
  BlockManager blocks_;
  std::unordered_map<RequestId, std::unique_ptr<RequestRecord>> requests_;
  WaitingSets waiting_;
  FairQueue fair_queue_;
  std::optional<Flock> flock_;           // the Decode-class requests, with the decode set `flock`
  std::optional<DynamicBatch> dynamic_;  // with the decode set `dynamic`
  JctOrder jct_order_;
  SlackOrder slack_;  // of requests whose prompts are not computed
  CostModel cost_;
  TimeUs first_arrival_us_ = 0;
  std::optional<RecentPrefixes> recent_;  // with retention `value`: of the OneShot requests
  // Where Calibrates, who waits for the first time; with forests, of those the OneShot requests
  // that hang under no trunk.
  PrefixWatch watch_;
  std::vector<std::unique_ptr<Trunk>> trunks_;
  RequestId next_trunk_ = kFirstTrunkId;
  uint64_t last_group_ = 0;         // of the latest arrival
  std::vector<Sequence*> running_;  // by key: the last is the first to be preempted
  std::vector<Sequence*> moved_;    // SetRank's
  std::vector<RequestId> ended_;    // requests to be forgotten in the next sweep
  uint64_t num_arrivals_ = 0;
  int32_t slots_used_ = 0;

  // Request-level batching only.
  bool batch_open_ = true;        // no decode step yet: requests may join
  int32_t batch_size_ = 0;        // samples that ever joined
  int32_t batch_slots_idle_ = 0;  // held by samples that have ended
  std::vector<SampleOutput> withheld_;

  Step step_;              // being planned or executed
  int64_t step_id_ = 0;    // of the one that Plan returned last
  TimeUs planned_us_ = 0;  // when the last round began
  bool preempted_in_round_ = false;
  std::vector<Sequence*> begun_;            // of PlanBegun
  std::optional<SloBatch> batch_;           // slo-aware batching, once the step has a head
  std::optional<SequenceKey> walked_to_;    // the last, by the order, that was considered for it
  std::vector<Sequence*> deferred_;         // heads that wait for a row of this step
  const Sequence* reserved_for_ = nullptr;  // by DecodeReserve in this round
  int32_t num_reserved_ = 0;
  int32_t tokens_left_ = 0;
  int32_t own_blocks_left_ = 0;  // of StepBounds::max_own_blocks
  // While one is suspended a step takes nothing that is less urgent than the most urgent of those.
  std::optional<SequenceKey> bound_;
  // At most max_suspended_steps; one more while decodes run alone or a step is being chosen.
  std::vector<Step> suspended_;
  std::vector<Step> free_steps_;
  TimeUs decode_step_us_ = 0;  // what the last step of decodes alone took
  TimeUs decoded_us_ = 0;      // when it ended

  std::vector<SampleOutput> outputs_;
  std::vector<SampleOutput> taken_;
  EngineStats stats_;
  int64_t iteration_ = 0;
  const Sequence* sole_ = nullptr;  // the only row of the last step, if that was a prefill
  int64_t sole_since_ = 0;          // the first step of which it has been that ever since
};

}  // namespace skein
