#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sched/requests/waiting_sets.h"
#include "sched/sequence.h"
#include "skein/engine.h"

namespace skein {

// All requests, and their running and waiting sequences, each in the order of the keys. Not
// thread-safe.
class RequestTable {
 public:
  using Requests = std::unordered_map<RequestId, std::unique_ptr<RequestRecord>>;

  // REQUIRES: the request's id is new.
  void Add(std::unique_ptr<RequestRecord> request);
  // Returns null if the request is unknown.
  RequestRecord* Find(RequestId id);
  const Requests& requests() const { return requests_; }
  bool empty() const { return requests_.empty(); }
  uint64_t num_arrivals() const { return num_arrivals_; }

  // The admitted sequences, by key: the last one is preempted first.
  const std::vector<Sequence*>& running() const { return running_; }
  void InsertRunning(Sequence* sequence);
  // REQUIRES: the sequence is in running().
  void EraseRunning(Sequence* sequence);

  WaitingSets& waiting() { return waiting_; }
  const WaitingSets& waiting() const { return waiting_; }

  // Tells that the last sample of the request has ended: ForgetEnded may forget the request.
  void NoteEnded(RequestId id);
  void EraseEndedRunning();
  // Forgets requests that have ended and are in no step.
  void ForgetEnded();

  int32_t NumRunningRequests() const;
  int32_t NumLiveRequests() const { return static_cast<int32_t>(requests_.size() - ended_.size()); }
  // Sets running_adapters and waiting_adapters of `stats`. O(running).
  void AddAdapters(EngineStats* stats) const;
  // Aborts unless states and sets agree. O(sequences * running).
  void CheckIntegrity() const;

 private:
  static constexpr int32_t kAdaptersShown = 64;  // the bits of EngineStats

  // The request's entry in num_live_of_adapter_. Null for the base model, or an adapter whose
  // number is too large to be shown.
  int32_t* NumLiveOf(const RequestRecord& request);

  Requests requests_;
  WaitingSets waiting_;
  std::vector<Sequence*> running_;
  std::vector<RequestId> ended_;
  // [adapter id - 1]: the adapter's requests that have not ended.
  std::array<int32_t, kAdaptersShown> num_live_of_adapter_{};
  uint64_t num_arrivals_ = 0;
};

}  // namespace skein
