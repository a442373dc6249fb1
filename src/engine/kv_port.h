#pragma once

#include <cstddef>
#include <span>

#include "kv/block_pool.h"

namespace skein {

// An executor's KV blocks as bytes: the seam at which prefill and decode come apart. Once a
// prompt's prefill is done, its blocks can go on in another executor of the same model, compute
// type and instruction class, on this machine or another: export each block of the table here,
// import it under whatever id there, and the sequence's next token has the bits that it would have
// had here. The order of the bytes does not depend on where blocks lie: [layer][KV head][K, V]
// (KvLayout). Not while a task that holds the block is alive.
class KvPort {
 public:
  virtual ~KvPort() = default;

  // Bytes of one block, of all layers.
  virtual size_t port_bytes() const = 0;
  // REQUIRES: port_bytes() bytes; a valid block. A last block that is not full is exported whole.
  virtual void ExportBlock(BlockId block, std::span<std::byte> out) const = 0;
  virtual void ImportBlock(BlockId block, std::span<const std::byte> in) = 0;
};

}  // namespace skein
