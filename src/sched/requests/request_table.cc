#include "sched/requests/request_table.h"

#include <algorithm>

#include "base/check.h"

namespace skein {

void RequestTable::Add(std::unique_ptr<RequestRecord> request) {
  ++num_arrivals_;
  const RequestId id = request->id;
  if (int32_t* num_live = NumLiveOf(*request)) ++*num_live;
  SKEIN_CHECK(requests_.emplace(id, std::move(request)).second);
}

int32_t* RequestTable::NumLiveOf(const RequestRecord& request) {
  const int32_t adapter = request.request.adapter_id;
  if (adapter < 1 || adapter > kAdaptersShown) return nullptr;
  return &num_live_of_adapter_[static_cast<size_t>(adapter - 1)];
}

void RequestTable::NoteEnded(RequestId id) {
  ended_.push_back(id);
  if (int32_t* num_live = NumLiveOf(*requests_.at(id))) --*num_live;
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

void RequestTable::AddAdapters(EngineStats* stats) const {
  std::array<int32_t, kAdaptersShown> num_running{};
  const RequestRecord* last = nullptr;
  for (const Sequence* sequence : running_) {
    const int32_t adapter = sequence->request->request.adapter_id;
    if (sequence->request != last && adapter >= 1 && adapter <= kAdaptersShown) {
      ++num_running[static_cast<size_t>(adapter - 1)];
    }
    last = sequence->request;
  }
  for (size_t i = 0; i < num_running.size(); ++i) {
    const uint64_t bit = uint64_t{1} << i;
    if (num_running[i] > 0) stats->running_adapters |= bit;
    if (num_live_of_adapter_[i] > num_running[i]) stats->waiting_adapters |= bit;
  }
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
