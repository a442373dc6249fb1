#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace skein {

// Caches a model's answers to questions about inputs without content, by question. Drops the least
// recently used entry first. Thread-safe.
class BaselineCache {
 public:
  using Logprobs = std::shared_ptr<const std::vector<double>>;

  // `bytes_max` limits the bytes of all keys and values together. An entry larger than the limit is
  // not kept.
  explicit BaselineCache(size_t bytes_max) : bytes_max_(bytes_max) {}

  Logprobs Find(const std::string& key);  // null: not in the cache
  void Put(const std::string& key, std::vector<double> logprobs);

 private:
  using Entry = std::pair<std::string, Logprobs>;

  static size_t BytesOf(const Entry& entry);

  const size_t bytes_max_;
  std::mutex mutex_;
  size_t bytes_ = 0;          // guarded by mutex_
  std::list<Entry> entries_;  // guarded by mutex_; most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;  // guarded by mutex_
};

}  // namespace skein
