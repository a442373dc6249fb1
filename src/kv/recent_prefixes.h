#pragma once

#include <cstdint>
#include <unordered_map>

#include "kv/prefix_hashes.h"

namespace skein {

// Tells which prefixes several of the latest prompts share, up to the number of blocks that a cache
// holds. It remembers the hashes of prompts' blocks in two generations. When the current generation
// holds the blocks of `num_caches` caches, it becomes the previous generation. Hashes of the
// previous generation are forgotten unless a prompt repeats them. The known shared blocks are
// closed under prefixes. Not thread-safe.
class RecentPrefixes {
 public:
  // REQUIRES: num_caches and cache_blocks are at least 1.
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
  const int64_t capacity_;  // the most hashes of a generation
  Generation current_;
  Generation previous_;
};

}  // namespace skein
