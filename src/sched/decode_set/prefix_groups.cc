#include "sched/decode_set/prefix_groups.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace skein {

PrefixGroups::PrefixGroups(const PrefixGroupOptions& options, const StopTable* learned,
                           std::unique_ptr<CandidateSource> source)
    : options_(options),
      policy_(MakeStopPolicy(options.stop, learned)),
      source_(source != nullptr ? std::move(source)
                                : std::make_unique<HashTreeSource>(options.blocks_per_chunk)) {
  SKEIN_CHECK(options.max_wait_us >= 1);
  aside_.reserve(kMaxPassedOver);
}

void PrefixGroups::Enter(Sequence* sequence, TimeUs now_us) {
  RequestRecord* request = sequence->request;
  SKEIN_CHECK(request->decode_set_member == kNone);
  int32_t member = static_cast<int32_t>(members_.size());
  if (free_members_.empty()) {
    members_.emplace_back();
    free_members_.reserve(members_.capacity());
    lines_.reserve(members_.capacity());
  } else {
    member = free_members_.back();
    free_members_.pop_back();
  }
  members_[member] = {.sequence = sequence, .entered_us = now_us};
  request->decode_set_member = member;
  LinkWaiting(member);
  Plant(member);
}

void PrefixGroups::Rerank(const RequestRecord& request) {
  const int32_t number = request.decode_set_member;
  // A request that was passed over returns to the tree with its rank of that time.
  if (number == kNone || members_[number].active || members_[number].handle == kNone) return;
  Uproot(number);
  Plant(number);
}

void PrefixGroups::Join(RequestRecord* request, TimeUs now_us) {
  const int32_t number = request->decode_set_member;
  SKEIN_CHECK(number != kNone && !members_[number].active);
  Member& member = members_[number];
  if (member.handle == kNone) {
    std::erase(aside_, number);
    Plant(number);
  }
  ++counters_.joined;
  counters_.overdue += IsOverdue(member, now_us);
  UnlinkWaiting(number);
  source_->Add(member.handle);
  member.active = true;
  if (choice_ && choice_->member != number) Unchoose();
  choice_.reset();
}

void PrefixGroups::Leave(RequestRecord* request) {
  const int32_t number = request->decode_set_member;
  if (number == kNone) return;
  if (members_[number].handle == kNone) {
    std::erase(aside_, number);
  } else {
    Uproot(number);
  }
  if (!members_[number].active) UnlinkWaiting(number);
  members_[number] = {};
  request->decode_set_member = kNone;
  free_members_.push_back(number);
}

Sequence* PrefixGroups::Candidate(TimeUs now_us) {
  if (closed_) return nullptr;
  const int32_t member = Choose(now_us).member;
  return member == kNone ? nullptr : members_[member].sequence;
}

bool PrefixGroups::PassOver(TimeUs now_us) {
  const int32_t member = Choose(now_us).member;
  SKEIN_CHECK(member != kNone && !closed_);
  const RequestRecord& request = *members_[member].sequence->request;
  SetAside(request, now_us);
  least_urgent_ = request.urgency.priority;
  return !closed_;
}

void PrefixGroups::SetAside(const RequestRecord& request, TimeUs now_us) {
  const int32_t number = request.decode_set_member;
  SKEIN_CHECK(number != kNone && !members_[number].active);
  if (members_[number].handle == kNone) return;
  if (IsOverdue(members_[number], now_us) || aside_.size() == kMaxPassedOver) {
    closed_ = true;
    return;
  }
  Uproot(number);
  aside_.push_back(number);
}

bool PrefixGroups::Approves(TimeUs now_us) {
  Choose(now_us);
  SKEIN_CHECK(choice_->member != kNone && !closed_);
  if (choice_->overdue || choice_->approved) return true;
  choice_->approved = policy_->ShouldAdd(source_->QuestionOf(members_[choice_->member].handle));
  if (!choice_->approved) {
    closed_ = true;
    ++counters_.stops;
  }
  return choice_->approved;
}

void PrefixGroups::EndRound() {
  Unchoose();
  policy_->EndBuilding();
  for (const int32_t member : aside_) Plant(member);
  aside_.clear();
  closed_ = false;
  least_urgent_ = kLeastPriority;
}

void PrefixGroups::ObserveStep(int64_t num_decodes, int64_t num_prefill_tokens,
                               TimeUs duration_us) {
  if (num_decodes == 0 || num_prefill_tokens > num_decodes || duration_us <= 0) return;
  policy_->Reward(static_cast<double>(num_decodes + num_prefill_tokens) * 1e6 /
                  static_cast<double>(duration_us));
}

void PrefixGroups::AddStats(EngineStats* stats) const {
  stats->prefix_groups_shared_tokens = shared_tokens();
  stats->prefix_groups_joined = counters_.joined;
  stats->prefix_groups_overdue = counters_.overdue;
  stats->prefix_groups_stops = counters_.stops;
}

CandidateSource::Rank PrefixGroups::RankOf(const Member& member) const {
  const RequestRecord& request = *member.sequence->request;
  return {.priority = request.urgency.priority,
          .rank = request.urgency.rank,
          .arrival = request.arrival};
}

// Chooses the best candidate. An overdue request of its priority goes before it. None is chosen if
// a request of a more urgent priority found no room.
const PrefixGroups::Choice& PrefixGroups::Choose(TimeUs now_us) {
  if (choice_) return *choice_;
  choice_ = Choice{};
  const std::optional<CandidateSource::Handle> found = source_->FindBest();
  if (!found) return *choice_;
  const int32_t best = member_of_[*found];
  const int32_t priority = PriorityOf(members_[best]);
  if (priority > least_urgent_) return *choice_;
  const int32_t overdue = FirstOverdue(priority, now_us);
  choice_->overdue = overdue != kNone;
  choice_->member = choice_->overdue ? overdue : best;
  return *choice_;
}

// Forgets the choice. An approved candidate has not joined.
void PrefixGroups::Unchoose() {
  if (choice_ && choice_->approved) policy_->Withdraw();
  choice_.reset();
}

// The first overdue member of a priority that was not passed over in this round; kNone if there is
// none.
int32_t PrefixGroups::FirstOverdue(int32_t priority, TimeUs now_us) const {
  const auto line = std::ranges::lower_bound(lines_, priority, {}, &Line::priority);
  SKEIN_CHECK(line != lines_.end() && line->priority == priority);
  for (int32_t i = line->first; i != kNone; i = members_[i].next) {
    const Member& member = members_[i];
    if (!IsOverdue(member, now_us)) return kNone;
    if (member.handle != kNone) return i;
  }
  return kNone;
}

// Puts a member into the source, waiting.
void PrefixGroups::Plant(int32_t number) {
  Member& member = members_[number];
  member.handle = source_->Insert(*member.sequence, RankOf(member));
  if (member.handle >= std::ssize(member_of_)) member_of_.resize(member.handle + 1);
  member_of_[member.handle] = number;
  Unchoose();
}

void PrefixGroups::Uproot(int32_t number) {
  Member& member = members_[number];
  if (member.active) {
    source_->Finish(member.handle);
  } else {
    source_->Remove(member.handle);
  }
  member.handle = kNone;
  Unchoose();
}

void PrefixGroups::LinkWaiting(int32_t number) {
  Member& member = members_[number];
  const int32_t priority = PriorityOf(member);
  auto line = std::ranges::lower_bound(lines_, priority, {}, &Line::priority);
  if (line == lines_.end() || line->priority != priority) {
    line = lines_.insert(line, {.priority = priority});
  }
  member.prev = line->last;
  (line->last != kNone ? members_[line->last].next : line->first) = number;
  line->last = number;
}

void PrefixGroups::UnlinkWaiting(int32_t number) {
  Member& member = members_[number];
  const auto line = std::ranges::lower_bound(lines_, PriorityOf(member), {}, &Line::priority);
  SKEIN_CHECK(line != lines_.end() && line->priority == PriorityOf(member));
  (member.prev != kNone ? members_[member.prev].next : line->first) = member.next;
  (member.next != kNone ? members_[member.next].prev : line->last) = member.prev;
  member.prev = member.next = kNone;
  if (line->first == kNone) lines_.erase(line);
}

void PrefixGroups::CheckIntegrity() const {
  source_->CheckIntegrity();
  int32_t num_linked = 0;
  for (const Line& line : lines_) {
    TimeUs before_us = 0;
    SKEIN_CHECK(line.first != kNone);
    for (int32_t i = line.first; i != kNone; i = members_[i].next) {
      const Member& member = members_[i];
      ++num_linked;
      SKEIN_CHECK(!member.active && member.entered_us >= before_us);
      SKEIN_CHECK(PriorityOf(member) == line.priority);
      SKEIN_CHECK(member.sequence->request->decode_set_member == i);
      SKEIN_CHECK(member.handle == kNone ? std::ranges::count(aside_, i) == 1
                                         : member_of_[member.handle] == i);
      before_us = member.entered_us;
    }
  }
  SKEIN_CHECK(std::ranges::is_sorted(lines_, {}, &Line::priority));
  SKEIN_CHECK(num_linked == num_waiting());
  SKEIN_CHECK(std::ssize(members_) - std::ssize(free_members_) == num_waiting() + num_active());
}

}  // namespace skein
