#include "sched/flock.h"

#include <algorithm>

#include "base/check.h"
#include "kv/block_pool.h"

namespace skein {

Flock::Flock(const FlockOptions& options, const StopTable* learned)
    : options_(options), policy_(MakeStopPolicy(options.stop, learned)) {
  SKEIN_CHECK(options.max_wait_us >= 1 && options.blocks_per_chunk >= 1);
  aside_.reserve(kMaxPassedOver);
}

void Flock::Enter(Sequence* sequence, TimeUs now_us) {
  RequestRecord* request = sequence->request;
  SKEIN_CHECK(request->flock_member == kNone);
  int32_t member = static_cast<int32_t>(members_.size());
  if (free_members_.empty()) {
    members_.emplace_back();
    free_members_.reserve(members_.capacity());
  } else {
    member = free_members_.back();
    free_members_.pop_back();
  }
  const auto prompt = std::span<const TokenId>(sequence->tokens).first(request->prompt_len);
  members_[member] = {
      .sequence = sequence,
      .hashes = SubsampleChunks(sequence->blocks.hashes(), prompt, options_.blocks_per_chunk),
      .entered_us = now_us};
  request->flock_member = member;
  LinkWaiting(member);
  Plant(member);
}

void Flock::Join(RequestRecord* request, TimeUs now_us) {
  const int32_t number = request->flock_member;
  SKEIN_CHECK(number != kNone && !members_[number].active);
  Member& member = members_[number];
  if (member.handle == kNone) {
    std::erase(aside_, number);
    Plant(number);
  }
  ++counters_.joined;
  counters_.overdue += now_us - member.entered_us >= options_.max_wait_us;
  UnlinkWaiting(number);
  tree_.Add(member.handle);
  member.active = true;
  choice_.reset();
}

void Flock::Leave(RequestRecord* request) {
  const int32_t number = request->flock_member;
  if (number == kNone) return;
  if (members_[number].handle == kNone) {
    std::erase(aside_, number);
  } else {
    Uproot(number);
  }
  if (!members_[number].active) UnlinkWaiting(number);
  request->flock_member = kNone;
  free_members_.push_back(number);
}

Sequence* Flock::Candidate(TimeUs now_us) {
  if (closed_) return nullptr;
  const int32_t member = Choose(now_us).member;
  return member == kNone ? nullptr : members_[member].sequence;
}

bool Flock::PassOver(TimeUs now_us) {
  const Choice choice = Choose(now_us);
  SKEIN_CHECK(choice.member != kNone && !closed_);
  if (choice.overdue || aside_.size() == kMaxPassedOver) {
    closed_ = true;
    return false;
  }
  Uproot(choice.member);
  aside_.push_back(choice.member);
  return true;
}

bool Flock::Approves(TimeUs now_us) {
  Choose(now_us);
  SKEIN_CHECK(choice_->member != kNone && !closed_);
  if (choice_->overdue || choice_->approved) return true;
  const ChunkedHashTree::Candidate best = tree_.Evaluate(members_[choice_->member].handle);
  const int32_t lost = std::max(0, best.tip_before - best.tip_after);
  choice_->approved =
      policy_->ShouldAdd({.batch_size = tree_.num_active(),
                          .lost_tokens = lost * kBlockTokens * options_.blocks_per_chunk,
                          .num_peers = best.num_peers});
  if (!choice_->approved) {
    closed_ = true;
    ++counters_.stops;
  }
  return choice_->approved;
}

void Flock::EndRound() {
  policy_->EndBuilding();
  for (const int32_t member : aside_) Plant(member);
  aside_.clear();
  choice_.reset();
  closed_ = false;
}

void Flock::ObserveStep(int64_t num_decode_tokens, int64_t num_prefill_tokens, TimeUs duration_us) {
  if (num_decode_tokens == 0 || num_prefill_tokens > num_decode_tokens || duration_us <= 0) return;
  policy_->Reward(static_cast<double>(num_decode_tokens + num_prefill_tokens) * 1e6 /
                  static_cast<double>(duration_us));
}

int64_t Flock::tip_tokens() const {
  return int64_t{tree_.tip_depth()} * kBlockTokens * options_.blocks_per_chunk;
}

// The best, unless somebody of its priority is overdue.
const Flock::Choice& Flock::Choose(TimeUs now_us) {
  if (choice_) return *choice_;
  choice_ = Choice{};
  if (const std::optional<ChunkedHashTree::Candidate> best = tree_.FindBest()) {
    choice_->member = member_of_[best->request];
    const int32_t priority = members_[choice_->member].sequence->request->urgency.priority;
    const int32_t overdue = FirstOverdue(priority, now_us);
    choice_->overdue = overdue != kNone;
    if (choice_->overdue) choice_->member = overdue;
  }
  return *choice_;
}

// The first of those that wait and were not passed over in this round.
int32_t Flock::FirstOverdue(int32_t priority, TimeUs now_us) const {
  for (int32_t i = first_waiting_; i != kNone; i = members_[i].next) {
    const Member& member = members_[i];
    if (now_us - member.entered_us < options_.max_wait_us) return kNone;
    const bool waits = member.handle != kNone;
    if (waits && member.sequence->request->urgency.priority == priority) return i;
  }
  return kNone;
}

// Puts a member into the tree, waiting.
void Flock::Plant(int32_t number) {
  Member& member = members_[number];
  const RequestRecord& request = *member.sequence->request;
  member.handle = tree_.Insert(member.hashes, {.priority = request.urgency.priority,
                                               .rank = request.urgency.rank,
                                               .arrival = request.arrival});
  if (member.handle >= std::ssize(member_of_)) member_of_.resize(member.handle + 1);
  member_of_[member.handle] = number;
  choice_.reset();
}

void Flock::Uproot(int32_t number) {
  Member& member = members_[number];
  if (member.active) {
    tree_.Finish(member.handle);
  } else {
    tree_.Remove(member.handle);
  }
  member.handle = kNone;
  choice_.reset();
}

void Flock::LinkWaiting(int32_t number) {
  Member& member = members_[number];
  member.prev = last_waiting_;
  (last_waiting_ != kNone ? members_[last_waiting_].next : first_waiting_) = number;
  last_waiting_ = number;
}

void Flock::UnlinkWaiting(int32_t number) {
  Member& member = members_[number];
  (member.prev != kNone ? members_[member.prev].next : first_waiting_) = member.next;
  (member.next != kNone ? members_[member.next].prev : last_waiting_) = member.prev;
  member.prev = member.next = kNone;
}

void Flock::CheckIntegrity() const {
  tree_.CheckIntegrity();
  int32_t num_linked = 0;
  TimeUs before_us = 0;
  for (int32_t i = first_waiting_; i != kNone; i = members_[i].next) {
    const Member& member = members_[i];
    ++num_linked;
    SKEIN_CHECK(!member.active && member.entered_us >= before_us);
    SKEIN_CHECK(member.sequence->request->flock_member == i);
    SKEIN_CHECK(member.handle == kNone ? std::ranges::count(aside_, i) == 1
                                       : member_of_[member.handle] == i);
    before_us = member.entered_us;
  }
  SKEIN_CHECK(num_linked == num_waiting());
  SKEIN_CHECK(std::ssize(members_) - std::ssize(free_members_) == num_waiting() + num_active());
}

}  // namespace skein
