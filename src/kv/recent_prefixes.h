#pragma once

#include <cstdint>
#include <unordered_map>

#include "kv/prefix_hashes.h"

namespace skein {

// Which prefixes several of the latest prompts have in common. Remembers the hashes of prompts'
// blocks in two generations: when the current one holds `capacity`, it becomes the previous one,
// whose hashes are forgotten unless a prompt has brought them again. What is known to be shared is
// closed under prefixes. Not thread-safe.
class RecentPrefixes {
 public:
  // REQUIRES: capacity >= 1.
  explicit RecentPrefixes(int64_t capacity);

  // A prompt has come, of which the first `max_blocks` blocks could be kept. O(blocks).
  void Note(const PrefixHashes& hashes, int32_t max_blocks);
  // How many of the first `max_blocks` blocks at least two prompts have brought. O(log max_blocks).
  // REQUIRES: `hashes` covers max_blocks.
  int32_t NumShared(const PrefixHashes& hashes, int32_t max_blocks) const;

 private:
  using Generation = std::unordered_map<uint64_t, bool>;  // by hash: whether two have brought it

  bool IsShared(uint64_t hash) const;

  const int64_t capacity_;
  Generation current_;
  Generation previous_;
};

}  // namespace skein
