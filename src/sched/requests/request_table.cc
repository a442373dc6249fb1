#include "sched/requests/request_table.h"

#include <algorithm>

#include "base/check.h"

namespace skein {

void RequestTable::Add(std::unique_ptr<RequestRecord> request) {
  ++num_arrivals_;
  const RequestId id = request->id;
  SKEIN_CHECK(requests_.emplace(id, std::move(request)).second);
}

RequestRecord* RequestTable::Find(RequestId id) {
  const auto found = requests_.find(id);
  return found == requests_.end() ? nullptr : found->second.get();
}

void RequestTable::InsertRunning(Sequence* sequence) {
  const auto behind = std::ranges::upper_bound(running_, sequence->key(), {}, &Sequence::key);
  running_.insert(behind, sequence);
}

void RequestTable::EraseRunning(Sequence* sequence) {
  const auto found = std::ranges::find(running_, sequence);
  SKEIN_CHECK(found != running_.end());
  running_.erase(found);
}

void RequestTable::EraseEndedRunning() {
  std::erase_if(running_, [](const Sequence* sequence) { return HasEnded(sequence->state); });
}

void RequestTable::ForgetEnded() {
  std::erase_if(ended_, [this](RequestId id) {
    const auto request = requests_.find(id);
    const auto in_step = [](const auto& sequence) { return sequence->in_step; };
    if (std::ranges::any_of(request->second->sequences, in_step)) return false;
    requests_.erase(request);
    return true;
  });
}

int32_t RequestTable::NumRunningRequests() const {
  int32_t count = 0;
  const RequestRecord* last = nullptr;
  for (const Sequence* sequence : running_) {  // the sequences of a request are neighbours
    if (sequence->request != last) ++count;
    last = sequence->request;
  }
  return count;
}

void RequestTable::CheckIntegrity() const {
  size_t num_running = 0, num_waiting = 0;
  for (const auto& [id, request] : requests_) {
    int32_t num_live = 0;
    for (const bool live : request->live) num_live += live;
    SKEIN_CHECK(num_live == request->num_live);
    for (const auto& sequence : request->sequences) {
      const bool running = IsRunning(sequence->state);
      num_running += running;
      num_waiting += !running && !HasEnded(sequence->state);
      SKEIN_CHECK(running == (std::ranges::count(running_, sequence.get()) == 1));
      SKEIN_CHECK(HasEnded(sequence->state) || sequence->num_slots == 0 || !sequence->oneshot());
    }
  }
  SKEIN_CHECK(num_running == running_.size());
  SKEIN_CHECK(num_waiting == waiting_.num_new() + waiting_.num_preempted());
  SKEIN_CHECK(std::ranges::is_sorted(running_, {}, &Sequence::key));
}

}  // namespace skein
