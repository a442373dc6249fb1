#pragma once

#include <cstddef>
#include <span>

#include "kv/block_pool.h"

namespace skein {

// An executor's KV blocks as bytes, so that prefill and decode can run on different executors.
// After a prompt's prefill, its decode can go on in another executor, on this machine or another.
// The other executor must have the same model, compute type, type of the KV cache and instruction
// class. Each block of the block table is exported here and imported there under any id. The
// sequence's next token then has the same bits as here. The order of the bytes does not depend on
// the blocks' positions: [layer][KV head][K, V] (KvLayout). REQUIRES: no task that holds the block
// is alive.
class KvPort {
 public:
  virtual ~KvPort() = default;

  // The bytes of one block, for all layers.
  virtual size_t port_bytes() const = 0;
  // REQUIRES: `out` and `in` have port_bytes() bytes; the block is valid. A partial last block is
  // exported in full.
  virtual void ExportBlock(BlockId block, std::span<std::byte> out) const = 0;
  virtual void ImportBlock(BlockId block, std::span<const std::byte> in) = 0;
};

}  // namespace skein
