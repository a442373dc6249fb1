// Preemption: a step in flight makes way for more urgent work and goes on later (FlowPrefill,
// section 4).
//
//            Plan                     Complete
//   (none) --------> in flight ------------------------> (none)
//                     |    ^
//          Reconsider |    | Plan: nothing is more urgent
//                     v    |
//                   suspended -------> dropped: nobody waits for it, or too many are suspended
//
// Its requests keep their blocks meanwhile; what is dropped is planned anew, and computed from
// where the step began.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"
#include "sched/batching/mixed_steps.h"
#include "sched/scheduler.h"

namespace skein {
namespace {

// One part in so many of a decode's interval is left for what delays its step: a boundary of the
// prefill, waking up, more decodes than last time.
constexpr int kIntervalMargin = 10;

// By deadline: of those without slack none goes before it.
constexpr SequenceKey kFirstLateKey = {{0, SlackOrder::kFirstLateRank}, 0, 0};

}  // namespace

bool Scheduler::IsSuspended(int64_t step_id) const {
  return std::ranges::find(suspended_, step_id, &Step::id) != suspended_.end();
}

StepFate Scheduler::Reconsider(TimeUs now_us) {
  SKEIN_CHECK(step_.in_flight());
  if (!Preempts(config_.sharing)) return StepFate::kGoesOn;
  FollowMoments(now_us);
  if (step_.IsDead()) {
    for (SchedulerObserver* observer : observers_) observer->OnPreempt(step_id_, now_us);
    step_.state = StepState::kFinished;
    Step dead = std::exchange(step_, TakeFreeStep());
    DropStep(dead);
    free_steps_.push_back(std::move(dead));
    Sweep();
    ++stats_.steps_dropped;
    return StepFate::kDropped;
  }
  if (!MakesWay(now_us)) return StepFate::kGoesOn;
  Suspend(now_us);
  return StepFate::kSuspended;
}

// Whether the step in flight is to stop for what goes before it.
bool Scheduler::MakesWay(TimeUs now_us) const {
  if (!StopsSteps() || step_.prefills.empty()) return false;
  if (NextDecodeUs().value_or(now_us + 1) <= now_us) return true;
  if (StopsNoMore()) return false;
  if (KeepsRate(step_.decodes)) return GoesBeforeMixed(now_us);
  const SequenceKey key = step_.Key();
  const Step* other = FirstSuspended(now_us);
  if (other != nullptr && KeyOf(*other, now_us) < key) return true;
  return Yields(key);
}

// Whether a step of this key makes way, or stays suspended, for what goes before it. By deadline,
// of those without slack the latest goes first, but no step waits for it: each new one would stop
// the one before it, and all of them come too late.
bool Scheduler::Yields(const SequenceKey& key) const {
  return MoreUrgentWaits(OrdersByDeadline() ? std::min(key, kFirstLateKey) : key);
}

std::optional<TimeUs> Scheduler::NextMoment() const {
  std::optional<TimeUs> next_us;
  for (const auto& moment_us : {slack_.NextMoment(), NextDecodeUs(), NextBoundUs()}) {
    if (moment_us) next_us = std::min(next_us.value_or(*moment_us), *moment_us);
  }
  return next_us;
}

// When the first suspended step will have been so for as long as it may: where the step in flight
// makes way for it then (MakesWay), or it would be looked at again and again.
std::optional<TimeUs> Scheduler::NextBoundUs() const {
  std::optional<TimeUs> bound_us;
  if (!step_.in_flight() || !StopsSteps() || step_.prefills.empty()) return bound_us;
  if (StopsNoMore() || KeepsRate(step_.decodes)) return bound_us;
  for (const Step& step : suspended_) {
    const TimeUs end_us =
        step.suspended_since_us + config_.max_suspended_us - step.was_suspended_us;
    bound_us = std::min(bound_us.value_or(end_us), end_us);
  }
  return bound_us;
}

// When decodes that take steps of their own should take the next: early enough that the step's end
// is in time. Prefills get at least as much of the device as such steps.
std::optional<TimeUs> Scheduler::NextDecodeUs() const {
  std::optional<TimeUs> due_us;
  // Neither a step of decodes alone stops for another nor one that keeps their rate.
  if (!StopsSteps()) return due_us;
  if (step_.in_flight() && (step_.prefills.empty() || KeepsRate(step_.decodes))) return due_us;
  for (const Sequence* sequence : running_) {
    if (sequence->state != SequenceState::kDecoding || !TakesOwnSteps(*sequence)) continue;
    if (sequence->in_step) continue;  // its token comes with the step's end
    const TimeUs interval_us = *sequence->request->request.slo_tpot_us;
    const TimeUs token_us = sequence->token_us + interval_us - interval_us / kIntervalMargin;
    due_us = std::min(due_us.value_or(token_us), token_us);
  }
  if (!due_us) return due_us;
  return std::max(*due_us - decode_step_us_, decoded_us_ + decode_step_us_);
}

// Whether whole prompts have kept a decode waiting for as long as they may.
bool Scheduler::StarvesDecodes(TimeUs now_us) const {
  if (config_.sharing != Sharing::kWhole || config_.max_decode_wait_us == 0) return false;
  return std::ranges::any_of(running_, [&](const Sequence* sequence) {
    return sequence->state == SequenceState::kDecoding &&
           now_us - sequence->token_us >= config_.max_decode_wait_us;
  });
}

// Whether this step is one of decodes alone, some of which are due.
bool Scheduler::PlanDueDecodes(TimeUs now_us) {
  if (!StarvesDecodes(now_us) && NextDecodeUs().value_or(now_us + 1) > now_us) return false;
  ReclaimForDecodes();
  PlanDecodes(true);
  return !step_.decodes.empty();
}

// The prompt that the next step computes, if it can be told before planning.
const Sequence* Scheduler::NextPrompt() const {
  const Sequence* next = nullptr;
  for (const Sequence* sequence : running_) {
    if (sequence->state == SequenceState::kPrefilling && !sequence->in_step) {
      next = sequence;
      break;
    }
  }
  const Sequence* head = waiting_.Head(true, true);
  const bool before = head != nullptr && (next == nullptr || head->key() < next->key());
  return before && CouldBegin(*head) ? head : next;
}

// So many tokens of prompts should the next step compute beside the decodes that ask for a rate;
// 0: those take steps of their own.
int32_t Scheduler::MixedTokens(TimeUs now_us) const {
  if (!StopsSteps() || config_.decode_steps == DecodeSteps::kOwn || !cost_.known()) return 0;
  StepWork decodes;
  TimeUs rate_us = std::numeric_limits<TimeUs>::max(), due_us = rate_us;
  for (const Sequence* sequence : running_) {
    if (sequence->state != SequenceState::kDecoding || !TakesOwnSteps(*sequence)) continue;
    if (sequence->in_step) continue;  // a suspended one
    decodes += WorkOf(1, sequence->num_computed);
    const TimeUs slo_us = *sequence->request->request.slo_tpot_us;
    rate_us = std::min(rate_us, slo_us);
    due_us = std::min(due_us, sequence->token_us + slo_us);
  }
  if (decodes.num_rows == 0) return 0;
  const Sequence* prompt = NextPrompt();
  if (prompt == nullptr || prompt->trunk != nullptr || RunsInOneStep(*prompt)) return 0;
  // A suspended step that goes on takes no more rows.
  if (const Step* suspended = FirstSuspended(now_us)) {
    const SequenceKey key = KeyOf(*suspended, now_us);
    if (!(prompt->key() < key) || !Yields(key)) return 0;
  }
  // What is late already has half of a rate more, lest the chunks shrink to nothing.
  const TimeUs budget_us = std::clamp(due_us - now_us, std::max<TimeUs>(1, rate_us / 2), rate_us);
  const int32_t num_cached = NumCachedNow(*prompt);
  const DecodeSharing sharing =
      CompareDecodeSharing(cost_, NumMissingNow(*prompt), num_cached,
                           config_.max_num_batched_tokens, decodes, static_cast<double>(budget_us));
  const bool mixes = config_.decode_steps == DecodeSteps::kMixed || sharing.mixes();
  return mixes ? sharing.step_tokens : 0;
}

// Whether the rows are of a step cut to the rate of decodes that are in it: it ends in time for
// them.
bool Scheduler::KeepsRate(std::span<const StepRow> decodes) const {
  return std::ranges::any_of(decodes, [this](const StepRow& row) {
    return TakesOwnSteps(*row.sequence) && !HasEnded(row.sequence->state);
  });
}

// Whether a prompt goes before the step in flight, which keeps the rate of decodes: it would meet
// its deadline if it began now, and not at the step's end, and the decodes are so far ahead of
// their rate that they keep it, on average, all the same.
bool Scheduler::GoesBeforeMixed(TimeUs now_us) const {
  if (!OrdersByDeadline() || !cost_.known()) return false;
  const Sequence* prompt = NextPrompt();
  if (prompt == nullptr || !(prompt->key() < step_.Key())) return false;
  const Step* suspended = FirstSuspended(now_us);
  if (suspended != nullptr && !(prompt->key() < KeyOf(*suspended, now_us))) return false;
  if (NumMissingNow(*prompt) > config_.max_num_batched_tokens) return false;
  const StepWork work = WorkOf(NumMissingNow(*prompt), NumCachedNow(*prompt));
  const TimeUs own_us = std::llround(cost_.PredictUs(work, StepKind::kPrefill));
  const TimeUs step_us =
      std::llround(cost_.PredictUs(step_.work, StepKind::kMixed)) - step_.RanUs(now_us);
  const TimeUs slack_us = prompt->request->deadline_us - now_us - own_us;
  if (slack_us <= 0 || slack_us >= step_us) return false;
  return std::ranges::all_of(step_.decodes, [&](const StepRow& row) {
    if (!TakesOwnSteps(*row.sequence)) return true;
    const RequestRecord& request = *row.sequence->request;
    const int64_t num_drawn = std::ssize(row.sequence->tokens) - request.prompt_len;
    return now_us + own_us + step_us <=
           request.times.first_token_us + num_drawn * *request.request.slo_tpot_us;
  });
}

// The suspended step that keeps the rate of decodes; null: none does. It makes way for one prompt
// and then goes on before anything else, since its decodes wait with it.
const Step* Scheduler::SuspendedMixed() const {
  const auto found = std::ranges::find_if(
      suspended_, [this](const Step& step) { return KeepsRate(step.decodes); });
  return found == suspended_.end() ? nullptr : &*found;
}

// Blocks that a prompt leaves free for what will preempt it. Not where it preempts itself, nor
// where nothing else runs: then it may take all there are.
int32_t Scheduler::ExpressReserve() const {
  return bound_ || running_.empty() ? 0 : config_.express_blocks;
}

SequenceKey Scheduler::KeyOf(const Step& step, TimeUs now_us) const {
  return step.SuspendedUs(now_us) >= config_.max_suspended_us ? Step::kFirstKey : step.Key();
}

// The most urgent one; null: none is suspended.
const Step* Scheduler::FirstSuspended(TimeUs now_us) const {
  const auto first = std::ranges::min_element(
      suspended_, {}, [&](const Step& step) { return KeyOf(step, now_us); });
  return first == suspended_.end() ? nullptr : &*first;
}

// Whether it finds a slot and blocks while those of suspended steps are taken.
bool Scheduler::CouldBegin(const Sequence& sequence) const {
  if (!MayJoin(sequence) || sequence.slots_needed() > NumFreeSlots()) {
    return false;
  }
  if (sequence.trunk != nullptr && sequence.trunk->suspended) return false;
  return DiscardsKv(sequence) || NeedOf(sequence).num_blocks <= blocks_.num_available();
}

// Whether there is prefill work in no step that goes before `than` and could begin now.
bool Scheduler::MoreUrgentWaits(const SequenceKey& than) const {
  for (const Sequence* sequence : running_) {
    if (!(sequence->key() < than)) break;
    if (sequence->state == SequenceState::kPrefilling && !sequence->in_step) return true;
  }
  bool want_oneshot = true, want_decode = true;
  while (const Sequence* head = waiting_.Head(want_oneshot, want_decode)) {
    if (!(head->key() < than)) return false;
    const bool begins = GoesByOrder(*head) || head->request->urgency < than.urgency;  // NextHead
    if (begins && CouldBegin(*head)) return true;
    (head->oneshot() ? want_oneshot : want_decode) = false;
  }
  return false;
}

void Scheduler::Suspend(TimeUs now_us) {
  for (SchedulerObserver* observer : observers_) observer->OnPreempt(step_id_, now_us);
  step_.Suspend(now_us);
  suspended_.push_back(std::move(step_));
  step_ = TakeFreeStep();
  const Step& step = suspended_.back();
  const TimeUs left_us = std::llround(cost_.PredictUs(step.work)) - step.ran_us;
  ReleaseRanks(step, std::max<TimeUs>(0, left_us), now_us);
  MarkTrunks({});
  Sweep();
  ++stats_.steps_preempted;
}

// Steps that are used again keep the memory of their vectors.
Step Scheduler::TakeFreeStep() {
  if (free_steps_.empty()) return {};
  Step step = std::move(free_steps_.back());
  free_steps_.pop_back();
  step.Begin(planned_us_);
  return step;
}

const StepPlan* Scheduler::ResumeStep(const Step* first, TimeUs now_us) {
  SKEIN_CHECK(step_.empty());
  const auto step = suspended_.begin() + (first - suspended_.data());
  free_steps_.push_back(std::exchange(step_, std::move(*step)));
  suspended_.erase(step);
  step_.Resume(now_us);
  step_id_ = step_.id;
  MarkTrunks(step_.prefills);
  HoldRanks();
  for (SchedulerObserver* observer : observers_) observer->OnResume(step_id_, now_us);
  ++stats_.steps_resumed;
  return step_.plan;
}

// Its requests go on from what they had computed before the step. REQUIRES: it is neither in flight
// nor among those suspended.
void Scheduler::DropStep(const Step& step) {
  for (const auto* rows : {&step.prefills, &step.decodes}) {
    for (const StepRow& row : *rows) {
      if (row.trunk != nullptr) {
        row.trunk->num_planned = 0;
      } else {
        row.sequence->in_step = false;
      }
    }
  }
  MarkTrunks(step_.prefills);
  ReleaseRanks(step, std::nullopt, planned_us_);
  // Members of its trunks, in this step or admitted for a later one: they hang under a prefix that
  // the step was to compute.
  std::vector<Sequence*> hanging;
  for (const StepRow& row : step.prefills) {
    if (row.trunk == nullptr || row.trunk->ready()) continue;
    std::ranges::copy_if(row.trunk->members, std::back_inserter(hanging), [](const Sequence* s) {
      return s->on_trunk && s->state == SequenceState::kPrefilling;
    });
  }
  for (const auto* rows : {&step.prefills, &step.decodes}) {
    for (const StepRow& row : *rows) {
      if (row.trunk != nullptr) continue;
      Sequence* sequence = row.sequence;
      if (!HasEnded(sequence->state)) continue;
      LeaveTrunk(sequence);
      sequence->blocks.Release(&blocks_);
    }
  }
  for (Sequence* sequence : hanging) Preempt(sequence);
}

void Scheduler::DropSuspended(std::vector<Step>::iterator step) {
  Step dropped = std::move(*step);
  suspended_.erase(step);
  DropStep(dropped);
  free_steps_.push_back(std::move(dropped));
  ++stats_.steps_dropped;
}

void Scheduler::DropDeadSteps() {
  for (size_t i = 0; i < suspended_.size();) {
    if (suspended_[i].IsDead()) {
      DropSuspended(suspended_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

// Makes room for the state of a step that begins; one of decodes alone is never suspended and has
// its own, a small one.
void Scheduler::BoundSuspended(TimeUs now_us) {
  const int32_t most = config_.max_suspended_steps + (step_.prefills.empty() ? 1 : 0);
  while (std::ssize(suspended_) > most) {
    const auto last = std::ranges::max_element(
        suspended_, {}, [&](const Step& step) { return KeyOf(step, now_us); });
    const TimeUs suspended_us = last->SuspendedUs(now_us);
    last->ForEachPrefilling(
        [suspended_us](Sequence* sequence) { sequence->request->suspended_us = suspended_us; });
    DropSuspended(last);
  }
}

// What the step that begins inherits of its bound from those that were dropped.
TimeUs Scheduler::SuspendedBefore() const {
  TimeUs suspended_us = 0;
  step_.ForEachPrefilling([&suspended_us](const Sequence* sequence) {
    suspended_us = std::max(suspended_us, sequence->request->suspended_us);
  });
  return suspended_us;
}

// Which trunks suspended steps and the rows `current` depend on.
void Scheduler::MarkTrunks(std::span<const StepRow> current) {
  if (trunks_.empty()) return;
  for (const auto& trunk : trunks_) trunk->in_step = trunk->suspended = false;
  const auto mark = [](std::span<const StepRow> rows, bool suspended) {
    for (const StepRow& row : rows) {
      Trunk* trunk = row.trunk != nullptr ? row.trunk : row.sequence->trunk;
      if (trunk == nullptr) continue;
      trunk->in_step = true;
      trunk->suspended = trunk->suspended || (suspended && row.trunk != nullptr);
    }
  };
  for (const Step& step : suspended_) mark(step.prefills, true);
  mark(current, false);
}

bool Scheduler::InAnyStep(const RequestRecord& request) const {
  return std::ranges::any_of(request.sequences,
                             [](const auto& sequence) { return sequence->in_step; });
}

void Scheduler::CheckSuspended() const {
  SKEIN_CHECK(std::ssize(suspended_) <= config_.max_suspended_steps + 1);
  size_t num_rows = 0, num_in_step = 0;
  const auto count = [&num_rows](std::span<const StepRow> rows) {
    for (const StepRow& row : rows) {
      num_rows += row.trunk == nullptr;
      SKEIN_CHECK(row.trunk != nullptr ? row.trunk->in_step : row.sequence->in_step);
    }
  };
  for (const Step& step : suspended_) {
    count(step.prefills);
    count(step.decodes);
  }
  if (step_.in_flight()) {
    count(step_.prefills);
    count(step_.decodes);
  }
  for (const auto& [id, request] : requests_) {
    for (const auto& sequence : request->sequences) num_in_step += sequence->in_step;
  }
  SKEIN_CHECK(num_rows == num_in_step);
}

}  // namespace skein
