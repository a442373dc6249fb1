#pragma once

#include <cstdint>
#include <unordered_map>

#include "kv/prefix_hashes.h"

namespace skein {

// Tells which prefixes several of the latest prompts share, as far as a cache would hold them. It
// remembers the hashes of prompts' blocks in two generations. When the current one holds the blocks
// of `num_caches` caches, it becomes the previous one. Hashes of the previous one are forgotten
// unless a prompt repeats them. The known shared blocks are closed under prefixes. Not thread-safe.
class RecentPrefixes {
 public:
  // REQUIRES: both are at least 1.
  RecentPrefixes(int32_t num_caches, int32_t cache_blocks);

  // Records a prompt. O(blocks).
  void Note(const PrefixHashes& hashes);
  // The number of first blocks, up to `max_blocks`, that at least two prompts had. O(log
  // max_blocks). REQUIRES: `hashes` covers max_blocks.
  int32_t NumShared(const PrefixHashes& hashes, int32_t max_blocks) const;

 private:
  using Generation = std::unordered_map<uint64_t, bool>;  // hash -> whether two prompts had it

  bool IsShared(uint64_t hash) const;

  const int32_t cache_blocks_;
  const int64_t capacity_;  // hashes in a generation
  Generation current_;
  Generation previous_;
};

}  // namespace skein
