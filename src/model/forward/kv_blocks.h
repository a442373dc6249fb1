#pragma once

#include <cstddef>
#include <cstdint>

#include "model/forward/pass_state.h"

namespace skein {

// The KV blocks of one layer: those in the cache, and those of the pass itself.
class KvBlocks {
 public:
  // REQUIRES: the layer is not linear.
  KvBlocks(const PassState& pass, int32_t layer)
      : pass_(pass), layer_(pass.config().KvLayer(layer)) {}

  // The part of the cache's block 0 that belongs to `kv_head`.
  const std::byte* Cache(int32_t kv_head) const;
  // The block, at its first KV head, to which the keys and values of a span of
  // BatchLayout::block_spans() go.
  std::byte* StoreBlock(const RowSpan& span) const;
  // The same block, once the keys and values of all chunks are stored.
  const std::byte* LoadBlock(const RowSpan& span) const;
  // Zeroes the blocks that begin among tokens [first_token, end_token). A reused block still has
  // keys and values of another sequence. Attention may load keys behind the last one, but never
  // uses them. A block in which every slot is stored needs no zeros.
  void ZeroFresh(int32_t first_token, int32_t end_token) const;
  // Copies the source of a fork (ForwardFork) into the row's own block.
  void CopyFork(int32_t row) const;

 private:
  int32_t BlockOf(const RowSpan& span) const;
  // `own`: the address of the pass's own blocks.
  std::byte* Block(int32_t block, std::byte* own) const;

  const PassState& pass_;
  const int32_t layer_;  // ModelConfig::KvLayer
};

}  // namespace skein
