#pragma once

#include <cstdint>
#include <unordered_map>

#include "kv/prefix_hashes.h"

namespace skein {

// Which prefixes several of the latest prompts have in common, as far as a cache holds them.
// Remembers the hashes of prompts' blocks in two generations: when the current one holds those of
// `num_caches` caches, it becomes the previous one, whose hashes are forgotten unless a prompt has
// brought them again. What is known to be shared is closed under prefixes. Not thread-safe.
class RecentPrefixes {
 public:
  // REQUIRES: both are at least 1.
  RecentPrefixes(int32_t num_caches, int32_t cache_blocks);

  // A prompt has come. O(blocks).
  void Note(const PrefixHashes& hashes);
  // How many of the first `max_blocks` blocks at least two prompts have brought. O(log max_blocks).
  // REQUIRES: `hashes` covers max_blocks.
  int32_t NumShared(const PrefixHashes& hashes, int32_t max_blocks) const;

 private:
  using Generation = std::unordered_map<uint64_t, bool>;  // by hash: whether two have brought it

  bool IsShared(uint64_t hash) const;

  const int32_t cache_blocks_;
  const int64_t capacity_;  // of a generation
  Generation current_;
  Generation previous_;
};

}  // namespace skein
