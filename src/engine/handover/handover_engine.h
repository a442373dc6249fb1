#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/engine_loop.h"
#include "engine/handover/decode_peer.h"
#include "engine/handover/handover_call.h"
#include "engine/kv_port.h"
#include "skein/engine.h"

namespace skein {

struct HandoverConfig {
  HostPort peer;
  Hello hello;
  size_t max_queued_bytes = size_t{1} << 30;  // of blocks that wait to be sent
  int32_t max_calls = 4096;                   // calls that are handed over at the same time
};

// The engine of a prefill instance. It computes prompts itself, and a decode instance generates the
// answers (disaggregation, as DistServe's 1P1D). The stages of a request that generates several
// tokens:
//
//   kPrefill ---------> kExporting -----------> kPeer -----------> ended
//   one token, drawn    its blocks are copied   the peer's tokens
//   and delivered here  and sent                     |
//      |                    |                        | refused, failed, peer lost
//      | nothing is left    | cancelled              v
//      +-----> ended <------+                     kLocal --------> ended
//
// The peer runs the whole request: it finds the prompt's full blocks in its prefix cache, and draws
// the first token again. If the peer is lost, this engine does the same. By the numeric contract,
// both draw the same tokens, so tokens that the caller has are left out. If the peer draws other
// tokens, its answer is not used.
//
// All other requests run here: without a connection, in groups, with a grammar, choices or
// log-probabilities of the prompt, or while the peer's queue is full. Callbacks also run on the
// peer's thread, but for one request never on both threads at the same time.
class HandoverEngine final : public Engine {
 public:
  // `local`, `port` and `clock` outlive this engine. REQUIRES: `local` caches prefixes and has no
  // states.
  HandoverEngine(EngineLoop* local, const KvPort* port, const Clock* clock, HandoverConfig config);
  ~HandoverEngine() override;

  Status Submit(Request request, OutputCallback callback, RequestId* id) override;
  Status SubmitGroup(std::vector<Request> requests, OutputCallback callback,
                     std::vector<RequestId>* ids) override {
    return local_->SubmitGroup(std::move(requests), std::move(callback), ids);
  }
  // Requests that may go to the peer wait here for their prefill alone: Submit decides.
  Status CheckWait(const Request& request, int64_t max_prompt_len) override {
    return request.generates() ? Status::Ok() : local_->CheckWait(request, max_prompt_len);
  }
  void Cancel(RequestId id) override { CancelSample(id, -1); }
  void CancelSample(RequestId id, int32_t sample) override;
  EngineLimits Limits() const override { return local_->Limits(); }
  EngineStats Stats() const override;
  Status View(std::function<void(EngineView)> done) override {
    return local_->View(std::move(done));
  }

  // Ends the connection; the requests at the peer end with kUnavailable. Must not be called on the
  // peer's thread.
  void Stop();

 private:
  using CallPtr = std::shared_ptr<HandoverCall>;

  bool HandsOver(const Request& request) const;
  CallPtr Find(RequestId id) const;
  // Passes on the new part of an output. Returns false if the output's tokens differ from the
  // tokens passed on before.
  bool Forward(const CallPtr& call, RequestOutput output);
  void OnPrefillOutput(const CallPtr& call, RequestOutput output);
  void Export(const CallPtr& call, BlockManager* blocks);
  void OnPeerOutput(RequestId id, RequestOutput output);
  void OnPeerLost();
  // Runs a request that has left kPrefill in this process.
  void TakeBack(const CallPtr& call);
  void OnLocalOutput(const CallPtr& call, RequestOutput output);
  void EndCancelled(const CallPtr& call);
  void EndAll(const CallPtr& call, FinishReason finish, const Status& status);

  EngineLoop* const local_;
  const KvPort* const port_;
  const Clock* const clock_;
  const HandoverConfig config_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> num_handed_over_{0};
  std::atomic<uint64_t> num_taken_back_{0};
  std::atomic<uint64_t> num_blocks_sent_{0};
  std::atomic<int32_t> num_at_peer_{0};
  mutable std::mutex mutex_;
  std::map<RequestId, CallPtr> calls_;  // guarded by mutex_
  DecodePeer peer_;                     // declared last: its thread uses the other members
};

}  // namespace skein
