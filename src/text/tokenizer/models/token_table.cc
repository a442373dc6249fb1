#include "text/tokenizer/models/token_table.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>

namespace skein {

TokenTable::TokenTable(size_t num_ids, size_t num_bytes)
    : spans_(num_ids), slots_(std::bit_ceil(num_ids + num_ids / 2 + 1)) {
  text_.reserve(num_bytes);
}

size_t TokenTable::FindSlot(std::string_view token, uint32_t* tag) const {
  const uint64_t hash = XXH3_64bits(token.data(), token.size());
  *tag = static_cast<uint32_t>(hash >> 32);
  size_t slot = hash & (slots_.size() - 1);
  while (slots_[slot].id >= 0 && (slots_[slot].tag != *tag || Text(slots_[slot].id) != token)) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

TokenTable::AddResult TokenTable::Add(std::string_view token, TokenId id) {
  if (Has(id)) return AddResult::kIdTaken;
  uint32_t tag = 0;
  const size_t slot = FindSlot(token, &tag);
  if (slots_[slot].id >= 0) return AddResult::kTokenTaken;
  slots_[slot] = {tag, id};
  spans_[id] = {static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(token.size())};
  text_ += token;
  ++num_tokens_;
  return AddResult::kAdded;
}

std::optional<TokenId> TokenTable::Find(std::string_view token) const {
  uint32_t tag = 0;
  const TokenId id = slots_[FindSlot(token, &tag)].id;
  if (id < 0) return std::nullopt;
  return id;
}

}  // namespace skein
