#pragma once

#include <cstddef>
#include <cstdint>

#include "model/forward/pass_state.h"

namespace skein {

// The KV blocks of one layer: those of the cache and the pass's own.
class KvBlocks {
 public:
  // REQUIRES: the layer is not linear.
  KvBlocks(const PassState& pass, int32_t layer)
      : pass_(pass), layer_(pass.config().KvLayer(layer)) {}

  // The part of the cache's block 0 that belongs to `kv_head`.
  const std::byte* Cache(int32_t kv_head) const;
  // The block, first KV head, that the keys and values of a span of BatchLayout::block_spans() go
  // to.
  std::byte* StoreBlock(const RowSpan& span) const;
  // Zeroes the blocks that begin among tokens [first_token, end_token). A block that changed hands
  // still holds keys and values of another sequence; the attention may load
  // keys behind the last one, but never uses them. A block whose every slot is stored needs no
  // zeros.
  void ZeroFresh(int32_t first_token, int32_t end_token) const;
  // Copies the tail of a fork (ForwardFork) into the row's own block.
  void CopyFork(int32_t row) const;

 private:
  // `own`: where the pass's own blocks lie.
  std::byte* Block(int32_t block, std::byte* own) const;

  const PassState& pass_;
  const int32_t layer_;  // among those with keys and values
};

}  // namespace skein
