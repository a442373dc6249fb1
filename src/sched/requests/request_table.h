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

// The requests that there are, and which of their sequences run and which wait, each in the order
// of its keys. Not thread-safe.
class RequestTable {
 public:
  using Requests = std::unordered_map<RequestId, std::unique_ptr<RequestRecord>>;

  // REQUIRES: its id is new.
  void Add(std::unique_ptr<RequestRecord> request);
  // Null: the request is unknown.
  RequestRecord* Find(RequestId id);
  const Requests& requests() const { return requests_; }
  bool empty() const { return requests_.empty(); }
  uint64_t num_arrivals() const { return num_arrivals_; }

  // The sequences that have been admitted, by key: the last is the first to be preempted.
  const std::vector<Sequence*>& running() const { return running_; }
  void InsertRunning(Sequence* sequence);
  // REQUIRES: it is there.
  void EraseRunning(Sequence* sequence);

  WaitingSets& waiting() { return waiting_; }
  const WaitingSets& waiting() const { return waiting_; }

  // The last sample of the request has ended: ForgetEnded may forget it.
  void NoteEnded(RequestId id);
  void EraseEndedRunning();
  // Forgets requests that have ended and are in no step.
  void ForgetEnded();

  int32_t NumRunningRequests() const;
  int32_t NumLiveRequests() const { return static_cast<int32_t>(requests_.size() - ended_.size()); }
  // Sets running_adapters and waiting_adapters. O(running).
  void AddAdapters(EngineStats* stats) const;
  // Aborts unless states and sets agree. O(sequences * running).
  void CheckIntegrity() const;

 private:
  static constexpr int32_t kAdaptersShown = 64;  // the bits of EngineStats

  // Null: the base model, or an adapter behind those that are shown.
  int32_t* NumLiveOf(const RequestRecord& request);

  Requests requests_;
  WaitingSets waiting_;
  std::vector<Sequence*> running_;
  std::vector<RequestId> ended_;
  // [adapter id - 1]: its requests that have not ended.
  std::array<int32_t, kAdaptersShown> num_live_of_adapter_{};
  uint64_t num_arrivals_ = 0;
};

}  // namespace skein
