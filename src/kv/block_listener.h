#pragma once

#include <cstdint>
#include <optional>

#include "kv/prefix_index.h"

namespace skein {

// Is told which blocks become findable in the prefix cache and which no longer are, in order. A
// block that leaves the device for the host tier stays findable.
// Called on the cache's thread from inside its functions; must not call back into the cache.
class BlockListener {
 public:
  virtual ~BlockListener() = default;
  // `parent_hash` is that of the block before; unset for the first block. `key.tokens` is valid
  // during the call.
  virtual void OnStored(const PrefixKey& key, std::optional<uint64_t> parent_hash) = 0;
  virtual void OnRemoved(uint64_t hash) = 0;
};

}  // namespace skein
