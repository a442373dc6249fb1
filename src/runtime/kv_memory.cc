#include "runtime/kv_memory.h"

#include <cstring>

#include "base/check.h"

namespace skein {

void KvMemory::CopyBlock(const BlockCopy& copy, int32_t layer) {
  SKEIN_CHECK(copy.from >= 0 && copy.from < layout_.num_blocks);
  SKEIN_CHECK(copy.to >= 0 && copy.to < layout_.num_blocks && copy.to != copy.from);
  std::memcpy(buffer_.data() + layout_.Offset(layer, copy.to, 0),
              buffer_.data() + layout_.Offset(layer, copy.from, 0), layout_.block_bytes());
}

}  // namespace skein
