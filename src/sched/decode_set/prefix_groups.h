#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "kv/chunked_hash_tree.h"
#include "sched/config.h"
#include "sched/decode_set/decode_set_policy.h"
#include "sched/decode_set/radix_candidate.h"
#include "sched/decode_set/stop_policy.h"
#include "sched/sequence.h"

namespace skein {

// The decode set `flock`: who joins the batch next. Decode-class requests wait in a chunked hash
// tree; the best candidate of those that are in the batch is put to the stop policy. A scheduler's
// round, while it has room:
//
//   Candidate --> finds no room -------------------------> PassOver --> Candidate ...
//       |
//       +------> waits for a row (see below) ------------> SetAside --> Candidate ...
//       |
//       +------> can be admitted now --> Approves --> yes: Join --> Candidate ...
//                                            |
//                                            +------> no: closed until EndRound
//
// Priorities go first: who finds no room is only ever passed by requests of its own priority or a
// more urgent one. Within a priority nobody who is overdue is passed by anyone who came later: an
// overdue request that cannot be admitted now closes the set until it can. So no request waits
// longer than the bound and then until those before it have been admitted, however lonely its
// prefix.
//
// Under the orders by deadline a priority shifts the deadline and is no rank here. The scheduler
// does not ask about a request with a deadline of its own (Request::slo_ttft_us) that the order has
// first, nor about one for which a prefill has stopped: it joins, passing the overdue too. How long
// those wait for such ones the order bounds.
//
// One whose missing prefix a row of the step computes cannot be admitted now either: it waits for
// that row, which is in the step, so for no longer than its prompt takes, and is passed by any
// priority meanwhile.
//
// A request counts as in the batch from Join to Leave, also while it is preempted: it is the first
// to come back. Its rank among equals is the order's, which says when that changes (Rerank).
//
// The stop policy's reward: a step counts if it decodes and at most as many prefill tokens share it
// as decode tokens; its tokens, of both kinds, over its time. They cost the same but in attention,
// and without the prefill tokens adding anyone would seem to slow down the step that prefills it.
// For comparisons, candidates may also be known by other things (FlockBy). kUser: a request's
// vector is one chunk, its user's; leaving the batch's user costs as many shared tokens as the
// prompt has. kRadix: prompts are compared token by token, in every choice anew. Not thread-safe.
// Allocates nothing while no more requests are in it than were before (kRadix and kUser do).
class PrefixGroups final : public DecodeSetPolicy {
 public:
  // `learned`: what the policy continues from, or null.
  explicit PrefixGroups(const FlockOptions& options, const StopTable* learned = nullptr);

  bool Chooses() const override { return true; }
  void Enter(Sequence* sequence, TimeUs now_us) override;
  void Rerank(const RequestRecord& request) override;
  void Join(RequestRecord* request, TimeUs now_us) override;
  void Leave(RequestRecord* request) override;
  Sequence* Candidate(TimeUs now_us) override;
  // Another candidate is no less urgent.
  bool PassOver(TimeUs now_us) override;
  // Others of any priority may be admitted in this round, unless the request is overdue or too many
  // have been set aside.
  void SetAside(const RequestRecord& request, TimeUs now_us) override;
  // Should the candidate not join in this round after all, nothing is learned from a yes.
  bool Approves(TimeUs now_us) override;
  void EndRound() override;
  void ObserveStep(int64_t num_decodes, int64_t num_prefill_tokens, TimeUs duration_us) override;
  void AddStats(EngineStats* stats) const override;
  const StopTable* learned() const override { return policy_->table(); }
  void CheckIntegrity() const override;

  int32_t num_waiting() const { return tree_.num_waiting() + static_cast<int32_t>(aside_.size()); }
  int32_t num_active() const { return tree_.num_active(); }
  // Tokens, in whole chunks, that all of the batch share; 0 with kUser, which does not know.
  int64_t shared_tokens() const;
  struct Counters {
    uint64_t joined = 0;
    uint64_t overdue = 0;  // of these
    uint64_t stops = 0;    // rounds that the stop policy ended
    bool operator==(const Counters&) const = default;
  };
  const Counters& counters() const { return counters_; }

 private:
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kLeastPriority = std::numeric_limits<int32_t>::max();
  // A round looks past so many requests that cannot be admitted: those who wait for a cold prefix
  // of their group, to begin another one in the same step. Each costs a removal and an insertion.
  static constexpr size_t kMaxPassedOver = 64;

  struct Member {
    Sequence* sequence = nullptr;
    ChunkHashes hashes;
    ChunkedHashTree::Handle handle = kNone;  // kNone: passed over in this round
    TimeUs entered_us = 0;
    int32_t prev = kNone;  // in the line of its priority
    int32_t next = kNone;
    bool active = false;
  };

  // Those of one priority that wait, in the order in which they entered.
  struct Line {
    int32_t priority = 0;
    int32_t first = kNone;
    int32_t last = kNone;
  };

  // The prompts of the batch and of those that wait and were not passed over.
  struct RadixView {
    std::vector<std::span<const int32_t>> active;
    std::vector<RadixPrompt> waiting;
    std::vector<int32_t> members;  // of `waiting`
  };

  struct Choice {
    int32_t member = kNone;
    bool overdue = false;
    bool approved = false;
  };

  void Plant(int32_t member);
  void Uproot(int32_t member);
  int32_t PriorityOf(const Member& member) const {
    return member.sequence->request->urgency.priority;
  }
  void LinkWaiting(int32_t member);
  void UnlinkWaiting(int32_t member);
  bool IsOverdue(const Member& member, TimeUs now_us) const {
    return now_us - member.entered_us >= options_.max_wait_us;
  }
  int32_t FirstOverdue(int32_t priority, TimeUs now_us) const;
  const Choice& Choose(TimeUs now_us);
  void Unchoose();
  ChunkHashes HashesOf(const Sequence& sequence) const;
  ChunkedHashTree::Rank RankOf(const Member& member) const;
  RadixView ViewByTokens() const;
  int32_t FindBest();
  StopQuestion QuestionOf(int32_t member) const;
  int32_t chunk_tokens() const { return kBlockTokens * options_.blocks_per_chunk; }

  const FlockOptions options_;
  const std::unique_ptr<StopPolicy> policy_;
  ChunkedHashTree tree_{ChunkedHashTree::Choice::kLeastTipLoss};
  std::vector<Member> members_;
  std::vector<int32_t> free_members_;
  std::vector<int32_t> member_of_;  // by handle
  std::vector<Line> lines_;         // by priority; none is empty
  std::vector<int32_t> aside_;      // passed over in this round
  std::optional<Choice> choice_;
  bool closed_ = false;                    // for this round
  int32_t least_urgent_ = kLeastPriority;  // of those who may be chosen in this round
  Counters counters_;
};

}  // namespace skein
