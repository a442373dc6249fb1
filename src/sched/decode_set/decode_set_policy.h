#pragma once

#include <cstdint>
#include <limits>

#include "sched/decode_set/stop_table.h"
#include "sched/sequence.h"
#include "skein/engine.h"

namespace skein {

// Which requests join the running decode batch, and how many. By default the order chooses, and as
// many join as there are slots and blocks. A policy is named in one list (sched/policies.cc).
// Deterministic. Not thread-safe.
class DecodeSetPolicy {
 public:
  virtual ~DecodeSetPolicy() = default;

  // The most samples that may run at once, beside the configured limit. A limit below the number of
  // running samples lets none join and stops none. One sample may always run.
  virtual int32_t MaxRunning() const { return std::numeric_limits<int32_t>::max(); }

  // Request-level batching: a batch forms, and from its first decode step on no request joins.
  // Its slots and its results are held back until the last request has ended.
  virtual bool RunsWholeBatches() const { return false; }
  // Whether a request of `num_samples` samples may join the batch.
  virtual bool MayJoin(int32_t /*num_samples*/) const { return true; }
  virtual void OnAdmit(int32_t /*num_samples*/) {}
  virtual void OnDecode() {}
  virtual void OnBatchEnd() {}

  // A policy that chooses replaces the order among new Decode-class requests. A scheduler's round,
  // while it has room:
  //
  //   Candidate --> finds no room -------------------------> PassOver --> Candidate ...
  //       |
  //       +------> waits for a row of this step -----------> SetAside --> Candidate ...
  //       |
  //       +------> can be admitted now --> Approves --> yes: Join --> Candidate ...
  //                                            |
  //                                            +------> no: closed until EndRound
  virtual bool Chooses() const { return false; }
  // At present the order chooses nevertheless. Does not change within a step's planning unless
  // Candidate is called.
  virtual bool FollowsOrder() const { return false; }
  // Rerank is called, too, when the cached share of a waiting prompt changes.
  virtual bool FollowsCache() const { return false; }
  // Choices depend on SchedulerConfig::decode_cost, so that a profile pays.
  virtual bool NeedsDecodeCosts() const { return false; }
  // A request begins to wait. REQUIRES: its prompt is hashed; `sequence` stays until Leave.
  virtual void Enter(Sequence* /*sequence*/, TimeUs /*now_us*/) {}
  // The rank of a request, waiting or not, has changed.
  virtual void Rerank(const RequestRecord& /*request*/) {}
  // A waiting request joins the batch, whether or not it was the candidate.
  virtual void Join(RequestRecord* /*request*/, TimeUs /*now_us*/) {}
  // A request, waiting or in the batch, is gone. Ignored for one that never entered.
  virtual void Leave(RequestRecord* /*request*/) {}
  // The next request; null if none waits or the set is closed for this round.
  virtual Sequence* Candidate(TimeUs /*now_us*/) { return nullptr; }
  // There is no room for the candidate. Returns false if no other may be admitted in this round.
  virtual bool PassOver(TimeUs /*now_us*/) { return false; }
  // A waiting request, candidate or not, waits for a row of this step.
  virtual void SetAside(const RequestRecord& /*request*/, TimeUs /*now_us*/) {}
  // Whether the candidate is to join.
  virtual bool Approves(TimeUs /*now_us*/) { return false; }
  virtual void EndRound() {}

  // A step with this work took `duration_us`.
  virtual void ObserveStep(int64_t /*num_decodes*/, int64_t /*num_prefill_tokens*/,
                           TimeUs /*duration_us*/) {}
  // A request has ended; its sequences still hold their tokens.
  virtual void ObserveEnd(const RequestRecord& /*request*/) {}

  virtual void AddStats(EngineStats* /*stats*/) const {}
  // The table that the policy has learned; null if it does not learn.
  virtual const StopTable* learned() const { return nullptr; }
  virtual void CheckIntegrity() const {}
};

// Continuous batching: as many requests as fit, at every step.
class FillSet final : public DecodeSetPolicy {};

}  // namespace skein
