#include "sched/decode_set/prefix_groups.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace skein {
namespace {

int32_t NumCached(const RequestRecord& request) {
  return std::max(0, request.prompt_len - request.num_missing);
}

}  // namespace

PrefixGroups::PrefixGroups(const PrefixGroupOptions& options, const StopTable* learned,
                           std::unique_ptr<CandidateSource> source, const DecodeDevice& device)
    : options_(options),
      by_order_(device.by_order),
      max_rows_(device.limits.max_rows),
      policy_(MakeStopPolicy(options.stop, learned)),
      source_(source != nullptr ? std::move(source)
                                : std::make_unique<HashTreeSource>(options.blocks_per_chunk)) {
  SKEIN_CHECK(options.max_wait_us >= 1);
  aside_.reserve(kMaxPassedOver);
  if (options.stop.rule != StopRule::kModel || source_->tree() == nullptr) return;
  turns_.emplace(options.stop, device.fit, device.limits, source_->tree(), source_->level_tokens(),
                 [this](CandidateSource::Handle handle) {
                   const Member& member = members_[member_of_[handle]];
                   return GroupTurns::Waiting{.cached_tokens = NumCached(*member.sequence->request),
                                              .since_us = member.entered_us};
                 });
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
  const int64_t num_allowed = int64_t{options_.max_wait_stretch} * (num_waiting() + max_rows_);
  members_[member] = {.sequence = sequence,
                      .entered_us = now_us,
                      .overdue_at = static_cast<int64_t>(counters_.joined) +
                                    (options_.max_wait_stretch > 0 ? num_allowed : 0)};
  request->decode_set_member = member;
  if (turns_) turns_->NoteArrival(request->prompt_len, request->budget, now_us);
  LinkWaiting(member);
  Plant(member);
  if (FollowsOrder() && ConsidersTurns(/*closed=*/false)) {
    DecideTurns(/*joinable=*/true, /*urgent=*/false, now_us);
  }
}

void PrefixGroups::Rerank(const RequestRecord& request) {
  cache_changed_ = true;
  const int32_t number = request.decode_set_member;
  // A request that was passed over gets its new rank when it returns to the tree.
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
  mean_wait_us_ += (now_us - member.entered_us - mean_wait_us_) / kWaitWindow;
  UnlinkWaiting(number);
  source_->Add(member.handle);
  member.active = true;
  member.joined_step = num_decode_steps_;
  sums_.prompt_tokens += request->prompt_len;
  sums_.joined_steps += num_decode_steps_;
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
  if (members_[number].active) {
    sums_.prompt_tokens -= request->prompt_len;
    sums_.joined_steps -= members_[number].joined_step;
  } else {
    UnlinkWaiting(number);
  }
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
  const Member& member = members_[choice_->member];
  const bool refused =
      num_active() > 0 &&
      (IsClosed(member) || (turns_ && turns_->IsFull(num_active())) || !HasRoomToGrow(member));
  if (refused) {
    closed_ = true;
    ++counters_.stops;
    return false;
  }
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
  ++round_;
  // Turns exist for requests that wait for each other.
  if (turns_ && turns_->restricts() && num_waiting() == 0) turns_->OpenAll();
}

void PrefixGroups::ObserveStep(int64_t num_decodes, int64_t num_prefill_tokens,
                               TimeUs duration_us) {
  if (turns_ && num_prefill_tokens > 0 && duration_us > 0) {
    const auto joined = static_cast<int64_t>(counters_.joined);
    // Prompts while no batch runs are those of a load's begin: its prefixes are not cached yet.
    if (num_decodes > 0) {
      turns_->ObservePrompts(static_cast<int32_t>(num_decodes), BatchNow(),
                             joined - observed_joins_, static_cast<double>(duration_us));
    }
    observed_joins_ = joined;
  }
  if (num_decodes == 0) return;
  if (turns_ && num_prefill_tokens == 0 && duration_us > 0) {
    turns_->ObserveStep(static_cast<int32_t>(num_decodes), BatchNow(),
                        static_cast<double>(duration_us));
  }
  ++num_decode_steps_;
  if (num_prefill_tokens > num_decodes || duration_us <= 0) return;
  policy_->Reward(static_cast<double>(num_decodes + num_prefill_tokens) * 1e6 /
                  static_cast<double>(duration_us));
}

void PrefixGroups::ObserveEnd(const RequestRecord& request) {
  if (!turns_ || request.execution_class != ExecutionClass::kDecode) return;
  if (request.sequences.empty()) return;
  // The last token has no KV.
  const auto num_tokens = static_cast<int32_t>(request.sequences.front()->tokens.size()) + 1;
  turns_->load().NoteEnd(std::clamp(num_tokens - request.prompt_len, 0, request.budget),
                         request.budget);
}

void PrefixGroups::AddStats(EngineStats* stats) const {
  stats->prefix_groups_shared_tokens = shared_tokens();
  stats->prefix_groups_joined = counters_.joined;
  stats->prefix_groups_overdue = counters_.overdue;
  stats->prefix_groups_stops = counters_.stops;
}

CandidateSource::Rank PrefixGroups::RankOf(const Member& member) const {
  const RequestRecord& request = *member.sequence->request;
  const int64_t num_cached = NumCached(request);
  return {.priority = 2 * request.urgency.priority + (member.closed ? 1 : 0),
          .rank = request.urgency.rank != 0 ? request.urgency.rank : -num_cached,
          .arrival = request.arrival};
}

GroupTurns::Batch PrefixGroups::BatchNow() const {
  return {.prompt_tokens = sums_.prompt_tokens,
          .output_tokens = num_active() * num_decode_steps_ - sums_.joined_steps};
}

// Whether memory suffices for the answers of the batch and of this request, if they become as long
// as earlier answers.
bool PrefixGroups::HasRoomToGrow(const Member& candidate) {
  if (!turns_) return true;
  const double share = turns_->load().output_share();
  const auto most = static_cast<double>(turns_->limits().max_kv_tokens);
  const RequestRecord& request = *candidate.sequence->request;
  const ChunkedHashTree::Candidate effect = source_->tree()->Evaluate(candidate.handle);
  const auto own = static_cast<double>((effect.num_missing + 1) * source_->level_tokens());
  const double outputs = share * request.budget;
  const double used = turns_->UsedTokens(BatchNow()) + own;
  if (used + outputs + turns_->load().output_tokens() * num_active() <= most) return true;
  growing_.assign(1, {outputs, own});
  for (const Member& member : members_) {
    if (!member.active) continue;
    const RequestRecord& other = *member.sequence->request;
    const auto done = static_cast<double>(num_decode_steps_ - member.joined_step);
    const double expected = share * other.budget;
    const double left = expected > done ? expected - done : (other.budget - done) / 2;
    const auto tail = static_cast<double>(other.prompt_len % source_->level_tokens());
    growing_.push_back({std::max(1.0, left), tail + done});
  }
  return PeakTokens(used, growing_) <= most;
}

// Whether it is time for a decision about turns. `closed`: the best candidate's group has no turn.
bool PrefixGroups::ConsidersTurns(bool closed) const {
  if (!turns_ || lines_.size() != 1 || num_waiting() == 0) return false;
  const bool often = closed || !turns_->restricts();
  // While the number of waiting requests grows, each round may decide.
  const bool grows = !turns_->restricts() && num_waiting() + num_active() > grown_to_;
  // Before the turn's first request joins, the prefixes of its groups may be evicted.
  const bool outdated = turns_->restricts() && cache_changed_;
  const bool stands_still = num_active() == 0 && (closed || outdated);
  return grows || stands_still || turns_->IsOutdated() ||
         round_ >= next_decision_ + (often ? 0 : kLongDecisionRounds);
}

// Decides about turns. Returns whether the set of requests that may join has changed.
bool PrefixGroups::DecideTurns(bool joinable, bool urgent, TimeUs now_us) {
  cache_changed_ = false;
  next_decision_ = round_ + kDecisionRounds;
  grown_to_ = (num_waiting() + num_active()) * 5 / 4;
  if (!turns_->Decide(BatchNow(), joinable, urgent, now_us)) return false;
  for (const CandidateSource::Handle handle : turns_->Opened()) {
    members_[member_of_[handle]].turn = turns_->turn();
  }
  for (const Line& line : lines_) {
    for (int32_t i = line.first; i != kNone; i = members_[i].next) {
      const Member& member = members_[i];
      if (member.handle == kNone || member.closed == IsClosed(member)) continue;
      Uproot(i);
      Insert(i);
    }
  }
  return true;
}

// The member that best joins the batch. Members with a turn go first.
std::optional<int32_t> PrefixGroups::FindBest(TimeUs now_us) {
  std::optional<CandidateSource::Handle> found = source_->FindBest();
  if (!found) return std::nullopt;
  const bool closed = IsClosed(members_[member_of_[*found]]);
  if (ConsidersTurns(closed) && DecideTurns(!closed, /*urgent=*/false, now_us)) {
    found = source_->FindBest();
  }
  return member_of_[*found];
}

// Chooses the best candidate. An overdue request of the same priority goes before it. No request is
// chosen if one of a more urgent priority found no room.
const PrefixGroups::Choice& PrefixGroups::Choose(TimeUs now_us) {
  if (choice_) return *choice_;
  choice_ = Choice{};
  const std::optional<int32_t> found = FindBest(now_us);
  choice_ = Choice{};  // a turn may have begun
  if (!found) return *choice_;
  const int32_t best = *found;
  const int32_t priority = members_[best].priority();
  if (priority > least_urgent_) return *choice_;
  const int32_t overdue = FirstOverdue(priority, now_us);
  if (overdue != kNone && IsClosed(members_[overdue])) {
    DecideTurns(/*joinable=*/false, /*urgent=*/true, now_us);
    choice_ = Choice{};
  }
  choice_->overdue = overdue != kNone;
  choice_->member = choice_->overdue ? overdue : best;
  return *choice_;
}

// Forgets the choice. An approved candidate that has not joined is withdrawn.
void PrefixGroups::Unchoose() {
  if (choice_ && choice_->approved) policy_->Withdraw();
  choice_.reset();
}

// The first overdue member of this priority that was not passed over in this round; kNone if there
// is none.
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

// Puts a waiting member into the source. It gets the turn of its group.
void PrefixGroups::Plant(int32_t number) {
  Insert(number);
  Member& member = members_[number];
  if (!member.closed) return;
  const auto peer = turns_->PeerOf(member.handle);
  if (!peer || members_[member_of_[*peer]].turn != turns_->turn()) return;
  member.turn = turns_->turn();
  Uproot(number);
  Insert(number);
}

void PrefixGroups::Insert(int32_t number) {
  Member& member = members_[number];
  member.closed = IsClosed(member);
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
  const int32_t priority = member.priority();
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
  const auto line = std::ranges::lower_bound(lines_, member.priority(), {}, &Line::priority);
  SKEIN_CHECK(line != lines_.end() && line->priority == member.priority());
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
      SKEIN_CHECK(member.priority() == line.priority);
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
