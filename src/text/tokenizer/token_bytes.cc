#include "text/tokenizer/token_bytes.h"

#include "text/unicode/ascii_scan.h"
#include "text/unicode/utf8.h"

namespace skein {

void TokenBytesTable::Reserve(size_t num_ids, size_t num_bytes) {
  entries_.reserve(num_ids);
  bytes_.reserve(num_bytes + kBlock);
}

void TokenBytesTable::Add(std::string_view bytes, bool is_special) {
  const bool is_text = FindAtLeast(bytes, 0, 0x80) == bytes.size() || IsValidUtf8(bytes);
  entries_.push_back({static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(bytes.size()),
                      is_special, is_text});
  bytes_ += bytes;
}

std::string TokenBytesTable::Decode(std::span<const TokenId> ids, bool skip_special) const {
  size_t size = 0;
  for (const TokenId id : ids) {
    if (const Entry* entry = Find(id, skip_special)) size += entry->size;
  }
  std::string text(size + kBlock, '\0');
  char* out = text.data();
  for (const TokenId id : ids) {
    const Entry* entry = Find(id, skip_special);
    if (entry == nullptr) continue;
    // Most tokens are short: one copy of a fixed size is enough, and the next copy overwrites the
    // surplus.
    if (entry->size <= kBlock) {
      std::memcpy(out, bytes_.data() + entry->begin, kBlock);
    } else {
      std::memcpy(out, bytes_.data() + entry->begin, entry->size);
    }
    out += entry->size;
  }
  text.resize(size);
  if (IsValidUtf8(text)) return text;
  std::string replaced;
  AppendUtf8Lossy(text, &replaced);
  return replaced;
}

}  // namespace skein
