#include "runtime/kv_memory.h"

#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace skein {

KvMemory::KvMemory(const KvLayout& layout)
    : KvMemory(layout, AlignedBuffer(layout.total_bytes())) {}

KvMemory::KvMemory(const KvLayout& layout, AlignedBuffer buffer)
    : layout_(layout),
      buffer_(std::move(buffer)),
      first_blocks_(layout.contiguous ? layout.num_blocks : 0) {
  SKEIN_CHECK(buffer_.size() == layout.total_bytes());
  std::iota(first_blocks_.begin(), first_blocks_.end(), 0);
}

void KvMemory::CopyBlock(const BlockCopy& copy, int32_t layer) {
  SKEIN_CHECK(copy.from >= 0 && copy.from < layout_.num_blocks);
  SKEIN_CHECK(copy.to >= 0 && copy.to < layout_.num_blocks && copy.to != copy.from);
  for (int32_t head = 0; head < layout_.num_kv_heads; ++head) {
    std::memcpy(buffer_.data() + layout_.Offset(layer, copy.to, head),
                buffer_.data() + layout_.Offset(layer, copy.from, head), layout_.head_bytes());
  }
}

void KvMemory::ExportBlock(BlockId block, std::span<std::byte> out) const {
  SKEIN_CHECK(block >= 0 && block < layout_.num_blocks && out.size() == port_bytes());
  std::byte* to = out.data();
  for (int32_t layer = 0; layer < layout_.num_layers; ++layer) {
    for (int32_t head = 0; head < layout_.num_kv_heads; ++head, to += layout_.head_bytes()) {
      std::memcpy(to, buffer_.data() + layout_.Offset(layer, block, head), layout_.head_bytes());
    }
  }
}

void KvMemory::ImportBlock(BlockId block, std::span<const std::byte> in) {
  SKEIN_CHECK(block >= 0 && block < layout_.num_blocks && in.size() == port_bytes());
  const std::byte* from = in.data();
  for (int32_t layer = 0; layer < layout_.num_layers; ++layer) {
    for (int32_t head = 0; head < layout_.num_kv_heads; ++head, from += layout_.head_bytes()) {
      std::memcpy(buffer_.data() + layout_.Offset(layer, block, head), from, layout_.head_bytes());
    }
  }
}

std::span<const BlockId> KvMemory::BlocksOf(std::span<const BlockId> table) const {
  if (!layout_.contiguous) return table;
  SKEIN_CHECK(table.size() <= first_blocks_.size());
  return std::span(first_blocks_).first(table.size());
}

}  // namespace skein
