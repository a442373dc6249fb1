#include "sched/order/ranks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "sched/arrival.h"
#include "sched/order/slack_order.h"

namespace skein {
namespace {

// Under orders without deadlines, pressing requests have ranks from this one on, by the end of
// their bound. No order has such low ranks for others, except for requests that are overdue.
constexpr int64_t kPressingPart = -(int64_t{1} << 61);

// A request presses for the second half of its bound, so that the others that press as well can be
// served within it.
constexpr TimeUs kPressingShare = 2;

constexpr double kLongestBoundUs = 1e15;  // about 31 years

}  // namespace

Ranks::Ranks(const SchedulerContext& context)
    : config_(*context.config),
      blocks_(context.blocks),
      cost_(context.cost),
      table_(context.table),
      order_(context.order),
      decode_set_(context.decode_set),
      calibrates_(context.order->FollowsCache() || context.batching->SkipsToFit() ||
                  context.decode_set->FollowsCache()) {}

void Ranks::BeginRound(TimeUs now_us) {
  round_us_ = now_us;
  FollowCache(now_us);
  FollowClock(now_us);
  if (order_->RanksEachRound()) RankAll(now_us);
}

void Ranks::FollowClock(TimeUs now_us) {
  while (Sequence* sequence = timers_.TakeDue(now_us)) Relocate(sequence, now_us);
}

void Ranks::FollowCacheInRound() {
  if (calibrates_) FollowCache(round_us_);
}

void Ranks::FollowCache(TimeUs now_us) {
  watch_.Follow(*blocks_, [this, now_us](Sequence* sequence, int32_t num_cached_blocks) {
    if (calibrates_) Reorder(sequence, num_cached_blocks * kBlockTokens, now_us);
  });
  blocks_->ForgetChanges();
}

void Ranks::RankArrival(Sequence* sequence, TimeUs now_us) {
  RequestRecord* record = sequence->request;
  record->deadline_us =
      SlackOrder::DeadlineOf(record->request, now_us, config_.deadlines.default_slo_us);
  int32_t num_cached = 0;
  if (calibrates_ || order_->LooksAtCache()) num_cached = NumCachedNow(*sequence);
  record->num_missing = record->prompt_len - num_cached;
  SetWaitBound(record);
  Ranking ranking = order_->RankArrival(ViewOf(*sequence, num_cached), now_us);
  Press(record, now_us, &ranking);
  record->urgency = {.priority = order_->ByDeadline() ? 0 : record->request.priority,
                     .rank = ranking.rank};
  record->num_charged = ranking.num_charged;
  record->memo = ranking.memo;
  timers_.Set(sequence, ranking.until_us);
}

void Ranks::SetWaitBound(RequestRecord* request) const {
  const Request& spec = request->request;
  const TimeUs bound_us = MaxWaitUs(spec, max_wait_us_);
  if (bound_us == 0 || (order_->ByDeadline() && spec.slo_ttft_us)) return;
  const int32_t shift = order_->ByDeadline() ? OrderPolicy::ShiftOf(spec.priority) : 0;
  const TimeUs wait_us = std::llround(
      std::clamp(std::ldexp(static_cast<double>(bound_us), shift), 1.0, kLongestBoundUs));
  request->wait = {.presses_us = request->times.arrival_us + wait_us / kPressingShare,
                   .due_us = request->times.arrival_us + wait_us};
}

void Ranks::Press(RequestRecord* request, TimeUs now_us, Ranking* ranking) const {
  WaitBound& wait = request->wait;
  if (now_us < wait.presses_us) {
    ranking->until_us = std::min(ranking->until_us, wait.presses_us);
    return;
  }
  wait.presses = true;
  const int64_t rank = order_->ByDeadline() ? wait.due_us : kPressingPart + wait.due_us;
  ranking->rank = std::min(ranking->rank, rank);
}

void Ranks::EnterWaiting(Sequence* sequence) {
  table_->waiting().Insert(sequence);
  if (IsWatched(*sequence)) watch_.Insert(sequence, *blocks_);
}

void Ranks::LeaveWaiting(Sequence* sequence) {
  table_->waiting().Erase(sequence);
  watch_.Erase(sequence);
}

void Ranks::NoteProgress(Sequence* sequence, int32_t num_cached, TimeUs now_us) {
  if (!order_->ByDeadline() || sequence->request->forked) return;
  Reorder(sequence, num_cached, now_us);
}

void Ranks::NotePreempted(Sequence* sequence) {
  if (!order_->ByDeadline() || sequence->request->forked) return;
  Reorder(sequence, NumCachedNow(*sequence), round_us_);
}

// It is not watched, since it shares a prefix.
void Ranks::FollowPrefix(Sequence* member, int32_t num_computed, TimeUs now_us) {
  if (!calibrates_ || member->state != SequenceState::kWaiting) return;
  Reorder(member, num_computed, now_us);
}

void Ranks::Relocate(Sequence* sequence, TimeUs now_us) {
  watch_.Erase(sequence);
  Reorder(sequence, NumCachedNow(*sequence), now_us);
  if (sequence->shared_prefix == nullptr && IsWatched(*sequence)) {
    watch_.Insert(sequence, *blocks_);
  }
}

void Ranks::Inherit(Sequence* leader, const Sequence& peer) {
  RequestRecord* request = leader->request;
  if (request->forked || peer.request->urgency >= request->urgency) return;
  table_->EraseRunning(leader);
  request->urgency = peer.request->urgency;
  request->deadline_us = std::min(request->deadline_us, peer.request->deadline_us);
  table_->InsertRunning(leader);
}

// Adopts a new version of the cost model. Watched prompts are ranked by their cached share. Under
// an order by deadline, this holds for all prompts. Other prompts are ranked by the tokens that
// were missing at their last ranking. A leader with an inherited rank inherits it again when its
// peer is next considered. REQUIRES: no request is left out of the round.
void Ranks::AdoptCosts(TimeUs now_us) {
  if (!order_->AdoptCosts(cost_->fit())) return;
  for (const auto& [id, request] : table_->requests()) {
    if (request->num_live == 0) continue;
    Sequence* first = request->sequences.front().get();
    if (order_->ByDeadline()) {
      if (!request->forked) Relocate(first, now_us);
      continue;
    }
    if (first->shared_prefix == nullptr && IsWatched(*first)) {
      Relocate(first, now_us);
      continue;
    }
    const OrderView view = ViewOf(*first, request->prompt_len - request->num_missing);
    std::optional<Ranking> ranking = order_->Rerank(view, now_us);
    if (!ranking) continue;
    Press(request.get(), now_us, &*ranking);
    SetRank(request.get(), ranking->rank, request->num_missing);
  }
}

void Ranks::Hold(const Step& step) {
  for (const StepRow& row : step.prefills) {
    if (row.prefix == nullptr) timers_.Clear(row.sequence);
  }
}

void Ranks::Release(const Step& step, std::optional<TimeUs> left_us, TimeUs now_us) {
  if (!order_->ByDeadline()) return;
  for (const StepRow& row : step.prefills) {
    if (row.prefix != nullptr || row.sequence->request->forked || HasEnded(row.sequence->state)) {
      continue;
    }
    row.sequence->request->step_rest = left_us ? StepRest{*left_us, row.num_tokens} : StepRest{};
    Relocate(row.sequence, now_us);
  }
}

int32_t Ranks::NumCachedNow(const Sequence& sequence) const {
  if (IsRunning(sequence.state)) return sequence.num_computed;
  return NumCachedBlocks(sequence, *blocks_) * kBlockTokens;
}

int32_t Ranks::NumMissingNow(const Sequence& sequence) const {
  return std::max(1, static_cast<int32_t>(sequence.tokens.size()) - NumCachedNow(sequence));
}

OrderView Ranks::ViewOf(const Sequence& sequence, int32_t num_cached) const {
  const RequestRecord& request = *sequence.request;
  return {.request = request.request,
          .arrival_us = request.times.arrival_us,
          .deadline_us = request.deadline_us,
          .prompt_len = request.prompt_len,
          .num_tokens = std::ssize(sequence.tokens),
          .num_cached = num_cached,
          .step_rest = request.step_rest,
          .memo = request.memo};
}

bool Ranks::IsWatched(const Sequence& sequence) const {
  if (sequence.state != SequenceState::kWaiting) return false;
  if (calibrates_) return true;
  return config_.policies.forests && sequence.oneshot() && SharesPrefix(*sequence.request);
}

// Ranks all requests that wait for the first time. REQUIRES: no request is left out of the round.
void Ranks::RankAll(TimeUs now_us) {
  std::vector<CachedPath> paths;
  std::vector<Sequence*> sequences;
  for (const auto& [id, request] : table_->requests()) {
    Sequence* sequence = request->sequences.front().get();
    if (sequence->state != SequenceState::kWaiting) continue;
    const int32_t num_cached = NumCachedBlocks(*sequence, *blocks_);
    paths.push_back({.hashes = sequence->blocks.hashes().blocks().first(num_cached),
                     .arrival = request->arrival,
                     .index = static_cast<int32_t>(sequences.size())});
    sequences.push_back(sequence);
  }
  order_->RankRound(paths);
  for (const CachedPath& path : paths) {
    Sequence* sequence = sequences[path.index];
    Ranking ranking = {.rank = path.rank};
    Press(sequence->request, now_us, &ranking);
    if (sequence->request->urgency.rank == ranking.rank) continue;
    watch_.Erase(sequence);
    SetRank(sequence->request, ranking.rank, sequence->request->num_missing);
    if (sequence->shared_prefix == nullptr && IsWatched(*sequence)) {
      watch_.Insert(sequence, *blocks_);
    }
  }
}

// Sets the request's rank and the number of its missing tokens, and moves its queued sequences.
// REQUIRES: no sequence of the request is in watch_, whose tables are ordered by key.
void Ranks::SetRank(RequestRecord* request, int64_t rank, int32_t num_missing) {
  if (rank == request->urgency.rank && num_missing == request->num_missing) return;
  moved_.clear();
  for (const auto& sequence : request->sequences) {
    const bool runs = IsRunning(sequence->state);
    // A sequence that is left out of the round returns to the queue at the round's end.
    if (HasEnded(sequence->state) || (!runs && !table_->waiting().Contains(*sequence))) continue;
    moved_.push_back(sequence.get());
    if (runs) {
      table_->EraseRunning(sequence.get());
    } else {
      table_->waiting().Erase(sequence.get());
    }
  }
  request->num_missing = num_missing;
  const int64_t rank_before = std::exchange(request->urgency.rank, rank);
  for (Sequence* sequence : moved_) {
    if (IsRunning(sequence->state)) {
      table_->InsertRunning(sequence);
    } else {
      table_->waiting().Insert(sequence);
    }
  }
  if (rank != rank_before || decode_set_->FollowsCache()) decode_set_->Rerank(*request);
}

// Moves the sequence to its current position in the order. `num_cached` tokens of its prompt are
// computed or cached. REQUIRES: the sequence is the only one of its request, and not in watch_.
void Ranks::Reorder(Sequence* sequence, int32_t num_cached, TimeUs now_us) {
  RequestRecord* request = sequence->request;
  const int32_t num_missing = static_cast<int32_t>(sequence->tokens.size()) - num_cached;
  Ranking ranking = order_->Rerank(ViewOf(*sequence, num_cached), now_us)
                        .value_or(Ranking{.rank = request->urgency.rank});
  Press(request, now_us, &ranking);
  timers_.Set(sequence, ranking.until_us);
  SetRank(request, ranking.rank, num_missing);
}

void Ranks::CheckIntegrity() const {
  size_t num_watched = 0, num_timers = 0;
  for (const auto& [id, request] : table_->requests()) {
    const bool timed = request->rank_until_us != RankTimers::kNever;
    num_timers += timed;
    SKEIN_CHECK(!timed || (!request->forked && request->num_live > 0));
    for (const auto& sequence : request->sequences) {
      num_watched += sequence->shared_prefix == nullptr && IsWatched(*sequence);
    }
  }
  SKEIN_CHECK(num_watched == watch_.size() && num_timers == timers_.size());
  const BlockManager::Changes changes = blocks_->changes();
  if (!changes.published.empty() || !changes.evicted.empty()) return;
  watch_.CheckIntegrity(*blocks_);
  if (!order_->FollowsCache() || order_->ByDeadline()) return;
  for (const auto& [id, request] : table_->requests()) {
    const Sequence& sequence = *request->sequences.front();
    if (sequence.shared_prefix != nullptr || !IsWatched(sequence)) continue;
    if (request->rank_until_us != RankTimers::kNever) continue;  // the rank depends on the time too
    if (request->wait.presses) continue;
    const auto ranking = order_->Rerank(ViewOf(sequence, NumCachedNow(sequence)), round_us_);
    SKEIN_CHECK(!ranking || request->urgency.rank == ranking->rank);
  }
}

}  // namespace skein
