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
  if (entries_.size() <= entries_max_) return;
  index_.erase(entries_.back().first);
  entries_.pop_back();
}

}  // namespace skein
