#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "engine/kv_port.h"
#include "kernels/kv_layout.h"
#include "kv/block_pool.h"
#include "sched/plan.h"

namespace skein {

static_assert(kBlockTokens == kKvBlockTokens, "policy and kernels mean the same block");

// The keys and values of all blocks of all layers. The system provides pages when a block is first
// written; for a file (AlignedBuffer::InFile), it provides them at once. The block pool knows the
// owners of the blocks.
//
// Contiguous memory holds one sequence at a time, from the sequence's beginning on. The blocks of
// the pool then only count its length; they are not addresses.
class KvMemory final : public KvPort {
 public:
  explicit KvMemory(const KvLayout& layout);
  // REQUIRES: `buffer` has layout.total_bytes().
  KvMemory(const KvLayout& layout, AlignedBuffer buffer);

  const KvLayout& layout() const { return layout_; }
  std::byte* data() { return buffer_.data(); }
  size_t bytes() const { return buffer_.size(); }

  // The blocks that hold the keys and values of a row with this table.
  std::span<const BlockId> BlocksOf(std::span<const BlockId> table) const;

  // Copies one layer of block `copy.from` to block `copy.to`. Thread-safe for different targets.
  void CopyBlock(const BlockCopy& copy, int32_t layer);

  size_t port_bytes() const override { return layout_.num_layers * layout_.block_bytes(); }
  void ExportBlock(BlockId block, std::span<std::byte> out) const override;
  void ImportBlock(BlockId block, std::span<const std::byte> in) override;

 private:
  KvLayout layout_;
  AlignedBuffer buffer_;
  std::vector<BlockId> first_blocks_;  // 0, 1, ...; for contiguous memory
};

}  // namespace skein
