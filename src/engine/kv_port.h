#pragma once

#include <cstddef>
#include <span>

#include "kv/block_pool.h"

namespace skein {

// An executor's KV blocks as bytes, so that prefill and decode can run on different executors. Once
// a prompt's prefill is done, its decode can go on in another executor on this machine or another.
// That one has the same model, compute type and instruction class. Each block of the table is
// exported here and imported there under any id. The sequence's next token then has the same bits
// as here. The order of the bytes does not depend on the blocks' positions: [layer][KV head][K, V]
// (KvLayout). REQUIRES: no task that holds the block is alive.
class KvPort {
 public:
  virtual ~KvPort() = default;

  // Bytes of one block, of all layers.
  virtual size_t port_bytes() const = 0;
  // REQUIRES: port_bytes() bytes; a valid block. A partial last block is exported in full.
  virtual void ExportBlock(BlockId block, std::span<std::byte> out) const = 0;
  virtual void ImportBlock(BlockId block, std::span<const std::byte> in) = 0;
};

}  // namespace skein
