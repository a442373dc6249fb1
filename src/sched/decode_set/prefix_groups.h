#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "sched/config.h"
#include "sched/decode_set/candidate_source.h"
#include "sched/decode_set/decode_set_policy.h"
#include "sched/decode_set/group_turns.h"
#include "sched/decode_set/memory_forecast.h"
#include "sched/decode_set/stop_policy.h"
#include "sched/sequence.h"

namespace skein {

// The facts that the stop rule `model` needs.
struct DecodeDevice {
  DecodeFit fit;
  DecodeLimits limits;
  bool by_order = false;  // with the rule `model`, the order chooses unless a group has a turn
};

// The decode set `prefix-homogeneous`: it builds prefix-homogeneous batches. Decode-class requests
// wait in a chunked hash tree. The tree gives the best candidate for the batch, and the stop policy
// decides whether the candidate joins. A scheduler's round, while the step has room:
//
//   Candidate --> finds no room -------------------------> PassOver --> Candidate ...
//       |
//       +------> waits for a row (see below) ------------> SetAside --> Candidate ...
//       |
//       +------> can be admitted now --> Approves --> yes: Join --> Candidate ...
//                                            |
//                                            +------> no: closed until EndRound
//
// Priorities go first: a request that finds no room is passed only by requests of its own priority
// or a more urgent one. Within a priority, later requests never pass an overdue one. An overdue
// request that cannot be admitted now closes the set until it can. A request's wait is thus
// bounded, even if no other request shares its prefix: max_wait_us, then the admission of the
// requests before it.
//
// Under the orders by deadline, a priority only shifts the deadline. The scheduler admits two kinds
// of requests without asking the set. One is the first request by the order if it has a deadline of
// its own (Request::slo_ttft_us). The other is a request for which a prefill has stopped. Both
// kinds pass even overdue requests; the order bounds how long the overdue requests wait.
//
// A request also waits while a row of this step computes its missing prefix. That wait lasts no
// longer than the row's prompt. Requests of any priority may pass it meanwhile.
//
// With the stop rule `model` some groups may have a turn (sched/decode_set/group_turns.h). The
// candidates are then requests of these groups first. Any other request is refused, unless it is
// overdue: an overdue request begins a turn of its group. No turns are given while requests of
// several priorities wait. The rule also refuses a request if the batch's answers, by their
// expected lengths, would outgrow the memory: requests would be preempted and computed again
// (sched/decode_set/memory_forecast.h).
//
// The order ranks candidates that are equal in the tree. If the order ranks by arrival alone, the
// candidate with the longest cached prefix goes first.
//
// A request counts as in the batch from Join to Leave. This includes the time when it is preempted,
// since a preempted request comes back first. The scheduler reports changed ranks (Rerank).
//
// The stop policy's reward is the number of a step's tokens, of both kinds, over its time. A step
// counts if it decodes and has at most as many prefill tokens as decode tokens. Both kinds cost the
// same except in attention. Without the prefill tokens, a new request would seem to slow down the
// step that prefills it. Not thread-safe. Allocates nothing while it holds no more requests than at
// its peak, unless its source does.
class PrefixGroups final : public DecodeSetPolicy {
 public:
  // `learned`: the table that the policy continues from, or null. `source`: finds candidates; null:
  // a HashTreeSource. The rule `model` needs a HashTreeSource and a fit of the device; without them
  // it never stops.
  explicit PrefixGroups(const PrefixGroupOptions& options, const StopTable* learned = nullptr,
                        std::unique_ptr<CandidateSource> source = nullptr,
                        const DecodeDevice& device = {});

  bool Chooses() const override { return true; }
  bool FollowsOrder() const override {
    return turns_ && !turns_->restricts() && (by_order_ || !turns_->FitHolds());
  }
  bool FollowsCache() const override { return true; }
  bool NeedsDecodeCosts() const override { return turns_.has_value(); }
  void AdoptDecodeCosts(const DecodeFit& fit) override {
    if (turns_) turns_->AdoptFit(fit);
  }
  void Enter(Sequence* sequence, TimeUs now_us) override;
  void Rerank(const RequestRecord& request) override;
  void Join(RequestRecord* request, TimeUs now_us) override;
  void Leave(RequestRecord* request) override;
  Sequence* Candidate(TimeUs now_us) override;
  // The next candidate has the same priority or a more urgent one.
  bool PassOver(TimeUs now_us) override;
  // Other requests of any priority may still be admitted in this round, unless the request is
  // overdue or kMaxPassedOver requests have been set aside.
  void SetAside(const RequestRecord& request, TimeUs now_us) override;
  // If the candidate does not join in this round after all, nothing is learned from the approval.
  bool Approves(TimeUs now_us) override;
  void EndRound() override;
  void ObserveStep(int64_t num_decodes, int64_t num_prefill_tokens, TimeUs duration_us) override;
  void ObserveEnd(const RequestRecord& request) override;
  void AddStats(EngineStats* stats) const override;
  const StopTable* learned() const override { return policy_->table(); }
  void CheckIntegrity() const override;

  int32_t num_waiting() const {
    return source_->num_waiting() + static_cast<int32_t>(aside_.size());
  }
  int32_t num_active() const { return source_->num_active(); }
  // Tokens, in full chunks, that all requests of the batch share.
  int64_t shared_tokens() const { return source_->shared_tokens(); }
  struct Counters {
    uint64_t joined = 0;
    uint64_t overdue = 0;  // those of `joined` that were overdue
    uint64_t stops = 0;    // rounds that the stop policy ended
    bool operator==(const Counters&) const = default;
  };
  const Counters& counters() const { return counters_; }

 private:
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kLeastPriority = std::numeric_limits<int32_t>::max();
  // The most requests that a round passes over because they cannot be admitted. Some of these wait
  // for a cold prefix of their group; passing over them lets another group begin in the same step.
  // Each request passed over costs a removal and an insertion.
  static constexpr size_t kMaxPassedOver = 64;
  // Rounds between two decisions about turns: usually, and while the requests of a turn join.
  static constexpr int64_t kDecisionRounds = 4;
  static constexpr int64_t kLongDecisionRounds = 64;
  static constexpr int64_t kWaitWindow = 32;  // requests that the mean wait covers

  struct Member {
    Sequence* sequence = nullptr;
    CandidateSource::Handle handle = kNone;  // kNone: passed over in this round
    TimeUs entered_us = 0;
    int64_t overdue_at = 0;   // it may be overdue from this number of joins on
    int64_t joined_step = 0;  // decode steps before it joined
    uint32_t turn = 0;        // the latest turn of its group
    bool closed = false;      // in the source behind the requests that may join
    int32_t prev = kNone;     // in the line of its priority
    int32_t next = kNone;
    bool active = false;

    int32_t priority() const { return sequence->request->urgency.priority; }
  };

  // The waiting members of one priority, in the order in which they entered.
  struct Line {
    int32_t priority = 0;
    int32_t first = kNone;
    int32_t last = kNone;
  };

  struct Choice {
    int32_t member = kNone;
    bool overdue = false;
    bool approved = false;
  };

  // Sums over the batch.
  struct Sums {
    int64_t prompt_tokens = 0;
    int64_t joined_steps = 0;
  };

  void Plant(int32_t member);
  void Insert(int32_t member);
  bool IsClosed(const Member& member) const {
    return turns_ && turns_->restricts() && member.turn != turns_->turn();
  }
  GroupTurns::Batch BatchNow() const;
  bool HasRoomToGrow(const Member& candidate);
  bool ConsidersTurns(bool closed) const;
  bool DecideTurns(bool joinable, bool urgent, TimeUs now_us);
  std::optional<int32_t> FindBest(TimeUs now_us);
  void Uproot(int32_t member);
  void LinkWaiting(int32_t member);
  void UnlinkWaiting(int32_t member);
  bool IsOverdue(const Member& member, TimeUs now_us) const {
    const TimeUs usual_us = options_.max_wait_stretch * mean_wait_us_;
    return now_us - member.entered_us >= std::max(options_.max_wait_us, usual_us) &&
           static_cast<int64_t>(counters_.joined) >= member.overdue_at;
  }
  int32_t FirstOverdue(int32_t priority, TimeUs now_us) const;
  const Choice& Choose(TimeUs now_us);
  void Unchoose();
  CandidateSource::Rank RankOf(const Member& member) const;

  const PrefixGroupOptions options_;
  const bool by_order_;
  const int32_t max_rows_;
  const std::unique_ptr<StopPolicy> policy_;
  const std::unique_ptr<CandidateSource> source_;
  std::optional<GroupTurns> turns_;  // of the stop rule `model`
  std::vector<Member> members_;
  std::vector<int32_t> free_members_;
  std::vector<int32_t> member_of_;  // the member of each handle
  std::vector<Line> lines_;         // by priority; none is empty
  std::vector<int32_t> aside_;      // passed over in this round
  std::optional<Choice> choice_;
  bool closed_ = false;                    // closed for this round
  int32_t least_urgent_ = kLeastPriority;  // the least urgent priority that may be chosen in this
                                           // round
  TimeUs mean_wait_us_ = 0;                // of the latest requests that joined
  Sums sums_;
  int64_t num_decode_steps_ = 0;
  int64_t round_ = 0;
  int64_t next_decision_ = 0;   // the round in which it is due
  bool cache_changed_ = false;  // maybe, since the latest decision
  int32_t grown_to_ = 0;        // if there are more requests, a decision is due earlier
  Counters counters_;
  int64_t observed_joins_ = 0;           // counters_.joined at the latest step with prompts
  std::vector<GrowingRequest> growing_;  // scratch
};

}  // namespace skein
