#include "sched/preemption/preemption.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sched/batching/mixed_steps.h"

namespace skein {
namespace {

// A tenth (1 / kIntervalMargin) of a decode's interval is a margin for delays of its step. A delay
// is caused by the wait for a boundary of the prefill, by wake-ups, or by more decodes than last
// time.
constexpr int kIntervalMargin = 10;

// Under an order whose steps make way only in need, a step's predicted end counts as this many
// times as far away: other requests may go before the one that waits.
constexpr double kNeedMargin = 5;

// With sharing kWhole, decodes whose requests press get a fourth of the time of prompts. Steps of
// few decodes are inefficient, so a larger share would cost more than it saves.
constexpr int kDecodeShare = 4;

}  // namespace

bool StopsSteps(const SchedulerConfig& config) {
  return Preempts(config.policies.sharing) && StopsSteps(config.policies.granularity);
}

Preemption::Preemption(const SchedulerContext& context, const Ranks* ranks,
                       const Admission* admission, const SuspendedSteps* suspended,
                       const Step* step)
    : config_(*context.config),
      cost_(context.cost),
      table_(context.table),
      order_(context.order),
      ranks_(ranks),
      admission_(admission),
      suspended_(suspended),
      step_(*step),
      stops_steps_(StopsSteps(*context.config)) {}

bool Preemption::MakesWay(TimeUs now_us) const {
  if (!stops_steps_ || step_.prefills.empty()) return false;
  if (NextDecodeUs().value_or(now_us + 1) <= now_us) return true;
  if (StopsNoMore()) return false;
  if (step_.KeepsTpot()) return GoesBeforeMixed(now_us);
  const SequenceKey key = step_.Key();
  const Step* other = suspended_->First(now_us);
  if (other != nullptr && suspended_->KeyOf(*other, now_us) < key) return true;
  return Yields(key) && (!order_->StopsStepsOnlyInNeed() || NeedsStop(now_us));
}

// Under an order by deadline, the request with the latest deadline goes first among those without
// slack. No step makes way for such a request. Otherwise each new one would stop the one before it,
// and all of them would be late.
bool Preemption::Yields(const SequenceKey& key) const {
  const SequenceKey first_patient = {{0, order_->FirstPatientRank()}, 0, 0};
  return MoreUrgentWaits(order_->ByDeadline() ? std::min(key, first_patient) : key);
}

bool Preemption::DecodesAreDue(TimeUs now_us) const {
  return StarvesDecodes(now_us) || NextDecodeUs().value_or(now_us + 1) <= now_us;
}

std::optional<int32_t> Preemption::NextPromptTokens() const {
  const Sequence* prompt = NextPrompt();
  if (prompt == nullptr) return std::nullopt;
  return ranks_->NumMissingNow(*prompt);
}

std::optional<TimeUs> Preemption::NextTime() const {
  const std::optional<TimeUs> decode_us = NextDecodeUs();
  const std::optional<TimeUs> bound_us = NextBoundUs();
  if (!decode_us || !bound_us) return decode_us ? decode_us : bound_us;
  return std::min(*decode_us, *bound_us);
}

void Preemption::NoteStep(TimeUs now_us) {
  const TimeUs ran_us = step_.RanUs(now_us);
  if (!step_.prefills.empty()) {
    prompts_ran_us_ = ran_us;
    decodes_ran_us_ = 0;
    return;
  }
  decode_step_us_ = ran_us;
  decoded_us_ = now_us;
  decodes_ran_us_ += ran_us;
}

// The time at which the first suspended step reaches its bound, if the step in flight would then
// make way for it (MakesWay). Any other time would wake the scheduler again and again.
std::optional<TimeUs> Preemption::NextBoundUs() const {
  if (!step_.in_flight() || !stops_steps_ || step_.prefills.empty()) return std::nullopt;
  if (StopsNoMore() || step_.KeepsTpot()) return std::nullopt;
  return suspended_->NextBoundUs();
}

// The time of the next step of decodes alone, for decodes that take their own steps. It is early
// enough for the step to end in time. Prefills get at least as much of the device as these steps.
std::optional<TimeUs> Preemption::NextDecodeUs() const {
  std::optional<TimeUs> due_us;
  // A step of decodes alone does not stop for another step of decodes. A mixed step that keeps the
  // TPOT deadline of decodes does not stop for one either.
  if (!stops_steps_) return due_us;
  if (step_.in_flight() && (step_.prefills.empty() || step_.KeepsTpot())) return due_us;
  for (const Sequence* sequence : table_->running()) {
    if (sequence->state != SequenceState::kDecoding || !sequence->request->decodes_in_own_steps)
      continue;
    if (sequence->in_step) continue;  // its token comes at the end of that step
    const TimeUs interval_us = *sequence->request->request.slo_tpot_us;
    const TimeUs token_us = sequence->token_us + interval_us - interval_us / kIntervalMargin;
    due_us = std::min(due_us.value_or(token_us), token_us);
  }
  if (!due_us) return due_us;
  return std::max(*due_us - decode_step_us_, decoded_us_ + decode_step_us_);
}

// Whether prompts have kept a decode waiting for too long. Once a decode's request presses, decodes
// get a share of the time. (A batch at request level takes no prompts while it decodes: all of
// its own go first.)
bool Preemption::StarvesDecodes(TimeUs now_us) const {
  if (config_.policies.sharing != Sharing::kWhole) return false;
  const TimeUs max_wait_us = config_.policies.max_decode_wait_us;
  const bool owed = decodes_ran_us_ < prompts_ran_us_ / kDecodeShare &&
                    config_.policies.decode_set != DecodeSet::kStatic;
  if (max_wait_us == 0 && !owed) return false;
  return std::ranges::any_of(table_->running(), [&](const Sequence* sequence) {
    if (sequence->state != SequenceState::kDecoding) return false;
    if (max_wait_us > 0 && now_us - sequence->token_us >= max_wait_us) return true;
    return owed && now_us >= sequence->request->wait.presses_us;
  });
}

// The prompt that the next step computes, as far as it is known before the step is planned.
const Sequence* Preemption::NextPrompt() const {
  const Sequence* next = nullptr;
  for (const Sequence* sequence : table_->running()) {
    if (sequence->state == SequenceState::kPrefilling && !sequence->in_step) {
      next = sequence;
      break;
    }
  }
  const Sequence* head = table_->waiting().Head(true, true);
  const bool before = head != nullptr && (next == nullptr || head->key() < next->key());
  return before && admission_->CouldBegin(*head) ? head : next;
}

int32_t Preemption::MixedTokens(TimeUs now_us) const {
  if (!stops_steps_ || config_.preemption.decode_steps == DecodeSteps::kOwn || !cost_->known())
    return 0;
  StepWork decodes;
  TimeUs rate_us = std::numeric_limits<TimeUs>::max(), due_us = rate_us;
  for (const Sequence* sequence : table_->running()) {
    if (sequence->state != SequenceState::kDecoding || !sequence->request->decodes_in_own_steps)
      continue;
    if (sequence->in_step) continue;  // in a suspended step
    decodes += WorkOf(1, sequence->num_computed);
    const TimeUs slo_us = *sequence->request->request.slo_tpot_us;
    rate_us = std::min(rate_us, slo_us);
    due_us = std::min(due_us, sequence->token_us + slo_us);
  }
  if (decodes.num_rows == 0) return 0;
  const Sequence* prompt = NextPrompt();
  if (prompt == nullptr || prompt->shared_prefix != nullptr || admission_->RunsInOneStep(*prompt))
    return 0;
  // A suspended step that goes on takes no more rows.
  if (const Step* suspended = suspended_->First(now_us)) {
    const SequenceKey key = suspended_->KeyOf(*suspended, now_us);
    if (!(prompt->key() < key) || !Yields(key)) return 0;
  }
  // If decodes are late, the step may still take half of a TPOT deadline, since chunks would
  // otherwise shrink to nothing.
  const TimeUs budget_us = std::clamp(due_us - now_us, std::max<TimeUs>(1, rate_us / 2), rate_us);
  const int32_t num_cached = ranks_->NumCachedNow(*prompt);
  const DecodeSharing sharing =
      CompareDecodeSharing(*cost_, ranks_->NumMissingNow(*prompt), num_cached,
                           config_.max_num_batched_tokens, decodes, static_cast<double>(budget_us));
  const bool mixes = config_.preemption.decode_steps == DecodeSteps::kMixed || sharing.mixes();
  return mixes ? sharing.step_tokens : 0;
}

// Whether a prompt goes before the step in flight, which keeps the TPOT deadline of decodes. The
// prompt must be one that would meet its deadline if it began now, but not if it began at the
// step's end. The decodes must be far enough ahead to keep their mean TPOT in spite of it.
bool Preemption::GoesBeforeMixed(TimeUs now_us) const {
  if (!order_->ByDeadline() || !cost_->known()) return false;
  const Sequence* prompt = NextPrompt();
  if (prompt == nullptr || !(prompt->key() < step_.Key())) return false;
  const Step* suspended = suspended_->First(now_us);
  if (suspended != nullptr && !(prompt->key() < suspended_->KeyOf(*suspended, now_us)))
    return false;
  if (ranks_->NumMissingNow(*prompt) > config_.max_num_batched_tokens) return false;
  const StepWork work = WorkOf(ranks_->NumMissingNow(*prompt), ranks_->NumCachedNow(*prompt));
  const TimeUs own_us = std::llround(cost_->PredictUs(work, StepKind::kPrefill));
  const TimeUs step_us =
      std::llround(cost_->PredictUs(step_.work, StepKind::kMixed)) - step_.RanUs(now_us);
  const TimeUs slack_us = prompt->request->deadline_us - now_us - own_us;
  if (slack_us <= 0 || slack_us >= step_us) return false;
  return std::ranges::all_of(step_.decodes, [&](const StepRow& row) {
    if (!row.sequence->request->decodes_in_own_steps) return true;
    const RequestRecord& request = *row.sequence->request;
    const int64_t num_drawn = std::ssize(row.sequence->tokens) - request.prompt_len;
    return now_us + own_us + step_us <=
           request.times.first_token_us + num_drawn * *request.request.slo_tpot_us;
  });
}

// Whether the next prompt would miss its deadline if the step in flight went on to its end. A
// request that is overdue waits for that end: its bound is far longer than a step.
bool Preemption::NeedsStop(TimeUs now_us) const {
  const Sequence* prompt = NextPrompt();
  if (prompt == nullptr || !cost_->known()) return true;
  const int64_t deadline_us = prompt->request->urgency.rank;
  if (deadline_us < 0) return false;
  const StepWork work = WorkOf(ranks_->NumMissingNow(*prompt), ranks_->NumCachedNow(*prompt));
  const double own_us = cost_->PredictUs(work, StepKind::kPrefill);
  const StepKind kind = step_.decodes.empty() ? StepKind::kPrefill : StepKind::kMixed;
  const double left_us =
      cost_->PredictUs(step_.work, kind) - static_cast<double>(step_.RanUs(now_us));
  return static_cast<double>(deadline_us - now_us) - own_us < kNeedMargin * left_us;
}

// Whether there is prefill work outside all steps that goes before `than` and could begin now.
bool Preemption::MoreUrgentWaits(const SequenceKey& than) const {
  for (const Sequence* sequence : table_->running()) {
    if (!(sequence->key() < than)) break;
    if (sequence->state == SequenceState::kPrefilling && !sequence->in_step) return true;
  }
  bool want_oneshot = true, want_decode = true;
  while (const Sequence* head = table_->waiting().Head(want_oneshot, want_decode)) {
    if (!(head->key() < than)) return false;
    const bool begins =
        admission_->GoesByOrder(*head) || admission_->GoesBefore(*head, than);  // as NextHead
    if (begins && admission_->CouldBegin(*head)) return true;
    (head->oneshot() ? want_oneshot : want_decode) = false;
  }
  return false;
}

}  // namespace skein
