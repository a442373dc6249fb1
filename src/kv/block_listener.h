#pragma once

#include <cstdint>
#include <optional>

#include "kv/prefix_index.h"

namespace skein {

// Hears of the blocks that become findable in the prefix cache and of those that cease to be, in
// order. Called on the cache's thread from inside its functions; must not call back into it.
class BlockListener {
 public:
  virtual ~BlockListener() = default;
  // `parent_hash`: of the block before it; unset for the first. `key.tokens` is valid during the
  // call.
  virtual void OnStored(const PrefixKey& key, std::optional<uint64_t> parent_hash) = 0;
  virtual void OnRemoved(uint64_t hash) = 0;
};

}  // namespace skein
