#include "server/decisions/baseline_cache.h"

namespace skein {

BaselineCache::Logprobs BaselineCache::Find(const std::string& key) {
  std::lock_guard lock(mutex_);
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return entries_.front().second;
}

void BaselineCache::Put(const std::string& key, std::vector<double> logprobs) {
  std::lock_guard lock(mutex_);
  if (index_.contains(key)) return;
  entries_.emplace_front(key, std::make_shared<const std::vector<double>>(std::move(logprobs)));
  index_.emplace(key, entries_.begin());
  bytes_ += BytesOf(entries_.front());
  while (bytes_ > bytes_max_) {
    bytes_ -= BytesOf(entries_.back());
    index_.erase(entries_.back().first);
    entries_.pop_back();
  }
}

// The key is stored twice, in the list and in the index. Both add about a hundred bytes.
size_t BaselineCache::BytesOf(const Entry& entry) {
  return 2 * entry.first.size() + entry.second->size() * sizeof(double) + 256;
}

}  // namespace skein
