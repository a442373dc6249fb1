#include "sched/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sched/arrival.h"
#include "sched/requests/request_views.h"
#include "sched/step_plan.h"

namespace skein {

Scheduler::Scheduler(const SchedulerConfig& config, std::vector<SchedulerObserver*> observers,
                     const PolicyLists& lists)
    : config_(config),
      observers_(std::move(observers)),
      blocks_(config.num_kv_blocks, config.prefix_caching, config.num_states,
              config.num_host_kv_blocks),
      cost_(config.cost),
      policies_(MakePolicies(config_, &cost_, lists)),
      context_{.config = &config_,
               .blocks = &blocks_,
               .cost = &cost_,
               .table = &table_,
               .order = policies_.order.get(),
               .batching = policies_.batching.get(),
               .decode_set = policies_.decode_set.get(),
               .stats = &stats_},
      ranks_(context_),
      prefixes_(context_, &ranks_),
      admission_(context_, &ranks_, &prefixes_),
      builder_(context_, &ranks_, &prefixes_, &admission_, &step_),
      suspended_(context_, &ranks_, &prefixes_, &admission_),
      preemption_(context_, &ranks_, &admission_, &suspended_, &step_),
      completion_(context_, &ranks_, &prefixes_, &admission_),
      predictor_(&cost_),
      hashes_prompts_(config.prefix_caching || config.policies.forests ||
                      policies_.decode_set->Chooses()) {
  BlockListener* listener = nullptr;
  for (SchedulerObserver* observer : observers_) {
    observer->OnStart(config_);
    if (observer->block_listener() == nullptr) continue;
    SKEIN_CHECK(listener == nullptr);
    listener = observer->block_listener();
  }
  blocks_.set_listener(listener);
}

Scheduler::~Scheduler() {
  for (SchedulerObserver* observer : observers_) observer->OnEnd(policies_.decode_set->learned());
}

void Scheduler::set_mixed_step_us(TimeUs us) {
  if (config_.max_whole_prompt_len == 0) pace_.set_bound_us(us);
}

void Scheduler::AdoptProfile(const CostFit& cost, const DecodeFit& decode_cost, TimeUs now_us) {
  SKEIN_CHECK(empty());
  for (SchedulerObserver* observer : observers_) observer->OnProfile(cost, decode_cost, now_us);
  if (cost != CostFit{}) {
    cost_.Adopt(cost);
    predictor_.Forget();
    ranks_.AdoptCosts(now_us);
  }
  if (decode_cost != DecodeFit{}) policies_.decode_set->AdoptDecodeCosts(decode_cost);
}

Status Scheduler::CheckFits(const SchedulerConfig& config, const Request& request) {
  return skein::CheckFits(config, request);
}

void Scheduler::Arrive(RequestId id, Request request, TimeUs now_us) {
  SKEIN_CHECK(CheckFits(config_, request).ok() && id < kFirstSharedPrefixId);
  for (SchedulerObserver* observer : observers_) observer->OnArrive(id, request, now_us);
  auto record = MakeRecord(config_, id, table_.num_arrivals(), std::move(request), now_us);
  Sequence* sequence = record->sequences.front().get();
  if (hashes_prompts_) sequence->blocks.Hash(sequence->tokens);
  admission_.NoteArrival(*sequence);
  ranks_.RankArrival(sequence, now_us);
  ranks_.EnterWaiting(sequence);
  if (!sequence->oneshot()) policies_.decode_set->Enter(sequence, now_us);
  table_.Add(std::move(record));
}

void Scheduler::Cancel(RequestId id, TimeUs now_us) {
  for (SchedulerObserver* observer : observers_) observer->OnCancel(id, -1, now_us);
  RequestRecord* request = table_.Find(id);
  if (request == nullptr) return;
  for (int32_t sample = 0; sample < std::ssize(request->live); ++sample) {
    if (request->live[sample]) completion_.CancelSample(request, sample, now_us);
  }
  Sweep();
}

void Scheduler::CancelSample(RequestId id, int32_t sample, TimeUs now_us) {
  for (SchedulerObserver* observer : observers_) observer->OnCancel(id, sample, now_us);
  RequestRecord* request = table_.Find(id);
  if (request == nullptr || sample < 0 || sample >= std::ssize(request->live)) return;
  if (!request->live[sample]) return;
  completion_.CancelSample(request, sample, now_us);
  Sweep();
}

bool Scheduler::IsQueued(RequestId id) {
  const RequestRecord* request = table_.Find(id);
  return request != nullptr && request->num_live > 0 && !request->scheduled;
}

const StepPlan* Scheduler::Plan(TimeUs now_us) {
  // 1. The round begins: ranks follow the cache and the clock.
  builder_.Begin(now_us);
  admission_.BeginRound(num_steps_, now_us);
  ranks_.BeginRound(now_us);
  // 2. A suspended step that has decodes with a TPOT deadline goes on after one other step.
  const Step* keeping_tpot = suspended_.KeepingTpot();
  if (keeping_tpot != nullptr && keeping_tpot->id != step_id_) {
    return ResumeStep(keeping_tpot, now_us);
  }
  // 3. to 7. of the round: a new step is filled, or a suspended step goes on in place of a new one.
  const Step* goes_on = FillStep(keeping_tpot, now_us);
  policies_.decode_set->EndRound();
  if (goes_on != nullptr) return ResumeStep(goes_on, now_us);
  if (step_.empty()) {
    SKEIN_CHECK(table_.running().empty() && table_.waiting().empty());
    return nullptr;
  }
  // 8. The rows become a typed plan.
  return BeginStep(now_us);
}

const Step* Scheduler::FillStep(const Step* keeping_tpot, TimeUs now_us) {
  // 3. Decodes that are due take a step of their own, unless a step with a chunk of a prompt costs
  // less.
  const int32_t mixed_tokens = preemption_.MixedTokens(now_us);
  if (mixed_tokens == 0 && AddDueDecodes(now_us)) return nullptr;
  // 4. The most urgent suspended step goes on, unless more urgent work waits.
  const Step* first = suspended_.First(now_us);
  const Step* goes_on = keeping_tpot != nullptr ? keeping_tpot : first;
  std::optional<SequenceKey> bound;
  if (first != nullptr) bound = suspended_.KeyOf(*first, now_us);
  builder_.SetBound(bound);
  if (bound && !preemption_.Yields(*bound)) return goes_on;
  // 5. Decodes take one token each, and the blocks for these tokens, if need be from OneShot work.
  admission_.ReclaimForDecodes();
  if (config_.policies.sharing != Sharing::kWhole) builder_.AddDecodes(mixed_tokens > 0);
  // 6. Prompts fill the rest of the token budget: first started ones, then waiting ones in order.
  if (mixed_tokens > 0) builder_.LimitTokens(mixed_tokens);
  if (keeping_tpot != nullptr) {
    if (const auto num_tokens = preemption_.NextPromptTokens()) builder_.LimitTokens(*num_tokens);
  }
  if (!step_.decodes.empty()) {
    if (const auto num_tokens = pace_.PromptTokens()) builder_.LimitTokens(*num_tokens);
  }
  builder_.AddPrompts();
  // 7. If the step has no prompt, the work that is more urgent than a suspended step cannot begin
  // now. Then the suspended step goes on, or the step is one of decodes alone.
  if (bound && step_.prefills.empty()) {
    builder_.RemoveDecodes();
    if (mixed_tokens == 0 || !AddDueDecodes(now_us)) return goes_on;
  }
  if (step_.prefills.empty() && config_.policies.sharing != Sharing::kChunked) {
    builder_.RemoveDecodes();
    builder_.AddDecodes(true);
  }
  return nullptr;
}

// Makes this step one of decodes alone if some decodes are due. Returns whether it does.
bool Scheduler::AddDueDecodes(TimeUs now_us) {
  if (!preemption_.DecodesAreDue(now_us)) return false;
  admission_.ReclaimForDecodes();
  builder_.AddDecodes(true);
  return !step_.decodes.empty();
}

const StepPlan* Scheduler::BeginStep(TimeUs now_us) {
  suspended_.MakeRoomFor(&step_, now_us);
  step_.plan = WritePlan(&step_, &blocks_);
  step_.state = StepState::kInFlight;
  step_.id = step_id_ = num_steps_++;
  if (cost_.known()) {
    step_.work = WorkOf(*step_.plan);
    predictor_.NotePlanned(step_);
  }
  CountStep();
  completion_.NotePlanned(step_);
  ranks_.Hold(step_);
  for (SchedulerObserver* observer : observers_) observer->OnPlan(step_id_, *step_.plan, now_us);
  return step_.plan;
}

const StepPlan* Scheduler::ResumeStep(const Step* suspended, TimeUs now_us) {
  suspended_.Resume(suspended, &step_, now_us);
  step_id_ = step_.id;
  for (SchedulerObserver* observer : observers_) observer->OnResume(step_id_, now_us);
  return step_.plan;
}

void Scheduler::CountStep() {
  const int64_t num_tokens = std::ssize(step_.decodes) + step_.NumPrefillTokens();
  stats_.iteration_tokens_sum += num_tokens;
  if (!step_.decodes.empty()) stats_.wasted_decode_slots += admission_.num_idle_slots();
  const auto& bounds = EngineStats::kIterationTokenBounds;
  const auto bound = std::lower_bound(bounds.begin(), bounds.end(), num_tokens);
  ++stats_.iteration_tokens[bound - bounds.begin()];
  stats_.steps_oneshot += std::holds_alternative<OneShotPlan>(*step_.plan);
  stats_.steps_decode += std::holds_alternative<DecodePlan>(*step_.plan);
  stats_.steps_mixed += std::holds_alternative<MixedPlan>(*step_.plan);
}

StepFate Scheduler::Reconsider(TimeUs now_us) {
  SKEIN_CHECK(step_.in_flight());
  if (!Preempts(config_.policies.sharing)) return StepFate::kGoesOn;
  ranks_.FollowClock(now_us);
  const bool dead = step_.IsDead();
  if (!dead && !preemption_.MakesWay(now_us)) return StepFate::kGoesOn;
  for (SchedulerObserver* observer : observers_) observer->OnPreempt(step_id_, now_us);
  if (dead) {
    suspended_.Drop(&step_);
  } else {
    suspended_.Suspend(&step_, now_us);
  }
  Sweep();
  return dead ? StepFate::kDropped : StepFate::kSuspended;
}

void Scheduler::Complete(StepResults* results, TimeUs now_us) {
  SKEIN_CHECK(step_.in_flight());
  for (SchedulerObserver* observer : observers_) observer->OnComplete(*results, now_us);
  step_.state = StepState::kFinished;
  ObserveStep(now_us);
  for (const StepRow& row : step_.prefills) {
    if (row.prefix != nullptr) prefixes_.Complete(row, now_us);
  }
  prefixes_.Mark(suspended_.steps(), {});
  completion_.TakeResults(step_, results, now_us);
  step_.prefills.clear();
  step_.decodes.clear();
  Sweep();
}

// Tells the cost model, the decode set and preemption how long the step took. If the cost model
// gets a new version, all requests are ranked again. Steps of decodes alone say nothing about
// prompts.
void Scheduler::ObserveStep(TimeUs now_us) {
  const TimeUs ran_us = step_.RanUs(now_us);
  if (cost_.known()) {
    const StepKind kind = step_.prefills.empty()  ? StepKind::kDecode
                          : step_.decodes.empty() ? StepKind::kPrefill
                                                  : StepKind::kMixed;
    cost_.ObserveKind(kind, step_.work, static_cast<double>(ran_us));
    const bool renewed =
        !step_.prefills.empty() && cost_.Observe(step_.work, static_cast<double>(ran_us));
    predictor_.Observe(step_, static_cast<double>(ran_us));  // the error that is left
    if (renewed) ranks_.AdoptCosts(now_us);
  }
  pace_.Observe(step_.NumPrefillTokens(), ran_us);
  policies_.decode_set->ObserveStep(std::ssize(step_.decodes), step_.NumPrefillTokens(), ran_us);
  preemption_.NoteStep(now_us);
}

void Scheduler::FailStep(const Status& status, TimeUs now_us) {
  SKEIN_CHECK(step_.in_flight());
  if (RequestRecord* largest = step_.Largest()) completion_.FailRequest(largest, status, now_us);
  suspended_.Drop(&step_);
  Sweep();
}

void Scheduler::FailAll(const Status& status, TimeUs now_us) {
  step_.state = StepState::kFinished;
  step_.prefills.clear();
  step_.decodes.clear();
  suspended_.Clear();
  prefixes_.Mark({}, {});
  for (const auto& [id, request] : table_.requests()) {
    for (const auto& sequence : request->sequences) completion_.AbandonRow(sequence.get());
    if (request->num_live > 0) completion_.FailRequest(request.get(), status, now_us);
  }
  Sweep();
}

// Forgets ended requests and unused prefixes.
void Scheduler::Sweep() {
  table_.EraseEndedRunning();
  // The rows of a step in flight or of a suspended step still point to their sequences.
  if (!step_.in_flight()) {
    suspended_.DropDead();
    table_.ForgetEnded();
    prefixes_.Sweep();
  }
  const bool batch_ended = policies_.decode_set->RunsWholeBatches() && table_.running().empty() &&
                           table_.waiting().num_preempted() == 0;
  if (!batch_ended) return;
  completion_.ReleaseWithheld();
  admission_.EndBatch();
}

std::optional<TimeUs> Scheduler::NextRoundUs() const {
  const std::optional<TimeUs> rank_us = ranks_.NextTime();
  const std::optional<TimeUs> step_us = preemption_.NextTime();
  if (!rank_us || !step_us) return rank_us ? rank_us : step_us;
  return std::min(*rank_us, *step_us);
}

EngineStats Scheduler::Stats() const {
  EngineStats stats = stats_;
  stats.num_requests_running = table_.NumRunningRequests();
  stats.num_requests_waiting = table_.NumLiveRequests() - stats.num_requests_running;
  table_.AddAdapters(&stats);
  stats.kv_blocks_total = blocks_.num_blocks();
  stats.kv_blocks_used = blocks_.num_referenced();
  stats.kv_blocks_cached = blocks_.num_cached();
  stats.host_kv_blocks_total = blocks_.host().num_slots();
  stats.host_kv_blocks_used = blocks_.host().size();
  stats.host_kv_blocks_saved = blocks_.num_saved();
  stats.host_kv_blocks_loaded = blocks_.num_loaded();
  policies_.decode_set->AddStats(&stats);
  return stats;
}

EngineView Scheduler::View(TimeUs now_us) const {
  EngineView view;
  AddRequestViews(table_, suspended_.steps(), now_us, &view);
  const std::vector<BlockManager::Run> runs = blocks_.Runs();
  view.num_prefixes = static_cast<int32_t>(runs.size());
  for (size_t i = 0; i < std::min(runs.size(), EngineView::kPrefixesMax); ++i) {
    view.prefixes.push_back({runs[i].parent, runs[i].num_blocks, runs[i].num_sequences});
  }
  view.block_tokens = kBlockTokens;
  view.num_blocks = blocks_.num_blocks();
  view.num_used_blocks = blocks_.num_referenced();
  view.num_cached_blocks = blocks_.num_cached();
  return view;
}

void Scheduler::CheckIntegrity() const {
  blocks_.CheckIntegrity();
  policies_.decode_set->CheckIntegrity();
  table_.CheckIntegrity();
  ranks_.CheckIntegrity();
  prefixes_.CheckIntegrity();
  suspended_.CheckIntegrity(step_);
  admission_.CheckIntegrity();
}

}  // namespace skein
