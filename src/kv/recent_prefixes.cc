#include "kv/recent_prefixes.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace skein {

RecentPrefixes::RecentPrefixes(int32_t num_caches, int32_t cache_blocks)
    : cache_blocks_(cache_blocks), capacity_(int64_t{num_caches} * cache_blocks) {
  SKEIN_CHECK(num_caches >= 1 && cache_blocks >= 1);
}

void RecentPrefixes::Note(const PrefixHashes& hashes) {
  // Generations change only between prompts, so a block's hash is never forgotten before the hashes
  // of later blocks.
  if (std::ssize(current_) >= capacity_) {
    previous_ = std::exchange(current_, {});
  }
  const auto blocks = hashes.blocks();
  for (const uint64_t hash : blocks.first(std::min<size_t>(blocks.size(), cache_blocks_))) {
    const bool known = previous_.contains(hash);
    const auto [entry, is_new] = current_.try_emplace(hash, known);
    if (!is_new) entry->second = true;
  }
}

bool RecentPrefixes::IsShared(uint64_t hash) const {
  // If both generations have the hash, the entry of the current one is the newer.
  if (const auto found = current_.find(hash); found != current_.end()) return found->second;
  const auto found = previous_.find(hash);
  return found != previous_.end() && found->second;
}

int32_t RecentPrefixes::NumShared(const PrefixHashes& hashes, int32_t max_blocks) const {
  SKEIN_CHECK(hashes.num_blocks() >= max_blocks);
  int32_t shared = 0;
  int32_t other = max_blocks + 1;  // the last of this many blocks is not shared
  while (shared + 1 < other) {
    const int32_t middle = shared + (other - shared) / 2;
    (IsShared(hashes[middle - 1]) ? shared : other) = middle;
  }
  return shared;
}

}  // namespace skein
