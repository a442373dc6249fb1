#pragma once

#include <cstdint>
#include <limits>

#include "sched/decode_set/stop_table.h"
#include "sched/sequence.h"
#include "skein/config.h"
#include "skein/engine.h"

namespace skein {

// Decides which requests join the running decode batch, and how many. By default the order chooses
// the requests, and as many join as there are slots and blocks. Each policy has an entry in one
// list (sched/policies.cc). Deterministic. Not thread-safe.
class DecodeSetPolicy {
 public:
  virtual ~DecodeSetPolicy() = default;

  // The most samples that may run at the same time, besides the configured limit. A limit below the
  // number of running samples lets no sample join and stops none. One sample may always run.
  virtual int32_t MaxRunning() const { return std::numeric_limits<int32_t>::max(); }

  // Whether batching is request-level: from a batch's first decode step on, no request joins it.
  // Its slots and its results are held back until its last request has ended.
  virtual bool RunsWholeBatches() const { return false; }
  // Whether a request of `num_samples` samples may join the batch.
  virtual bool MayJoin(int32_t /*num_samples*/) const { return true; }
  virtual void OnAdmit(int32_t /*num_samples*/) {}
  virtual void OnDecode() {}
  virtual void OnBatchEnd() {}

  // Whether the policy, not the order, chooses among new Decode-class requests. A scheduler's
  // round, while the step has room:
  //
  //   Candidate --> finds no room -------------------------> PassOver --> Candidate ...
  //       |
  //       +------> waits for a row of this step -----------> SetAside --> Candidate ...
  //       |
  //       +------> can be admitted now --> Approves --> yes: Join --> Candidate ...
  //                                            |
  //                                            +------> no: closed until EndRound
  virtual bool Chooses() const { return false; }
  // Whether the order nevertheless chooses at present. The result does not change while a step is
  // planned, unless Candidate is called.
  virtual bool FollowsOrder() const { return false; }
  // Whether Rerank is also called when the cached share of a waiting prompt changes.
  virtual bool FollowsCache() const { return false; }
  // Whether choices depend on SchedulerConfig::decode_cost, so that a profile run improves them.
  virtual bool NeedsDecodeCosts() const { return false; }
  // A profile has measured decodes. REQUIRES: no request waits or runs.
  virtual void AdoptDecodeCosts(const DecodeFit& /*fit*/) {}
  // A request begins to wait. REQUIRES: its prompt is hashed; `sequence` stays until Leave.
  virtual void Enter(Sequence* /*sequence*/, TimeUs /*now_us*/) {}
  // The rank of a request, waiting or not, has changed.
  virtual void Rerank(const RequestRecord& /*request*/) {}
  // A waiting request joins the batch, whether or not it was the candidate.
  virtual void Join(RequestRecord* /*request*/, TimeUs /*now_us*/) {}
  // A request, waiting or in the batch, is gone. A request that never entered is ignored.
  virtual void Leave(RequestRecord* /*request*/) {}
  // The next request; null if none waits or the set is closed for this round.
  virtual Sequence* Candidate(TimeUs /*now_us*/) { return nullptr; }
  // There is no room for the candidate. Returns false if no other request may be admitted in this
  // round.
  virtual bool PassOver(TimeUs /*now_us*/) { return false; }
  // A waiting request, candidate or not, waits for a row of this step that computes its prefix.
  virtual void SetAside(const RequestRecord& /*request*/, TimeUs /*now_us*/) {}
  // Whether the candidate may join.
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
