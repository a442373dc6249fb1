#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/request.h"

namespace skein {

// The bytes that each token of a byte-level vocabulary gives, end to end in one string: decoding is
// a look-up and a copy. Immutable once built.
class TokenBytesTable {
 public:
  void Reserve(size_t num_ids, size_t num_bytes);
  // Adds the token of the next id, from 0 on. An empty one gives nothing.
  void Add(std::string_view bytes, bool is_special);
  // To be called behind the last Add: makes room for reading whole blocks.
  void Finish() { bytes_.append(kBlock, '\0'); }

  // The text of all ids; what is not valid UTF-8 becomes U+FFFD. Unknown ids give nothing.
  std::string Decode(std::span<const TokenId> ids, bool skip_special) const;

  // nullptr for an unknown id, and for a special one if those are skipped.
  struct Entry {
    uint32_t begin;
    uint32_t size : 30;
    uint32_t is_special : 1;
    uint32_t is_text : 1;  // valid UTF-8, not a part of a character
  };
  const Entry* Find(TokenId id, bool skip_special) const {
    if (id < 0 || static_cast<size_t>(id) >= entries_.size()) return nullptr;
    const Entry& entry = entries_[id];
    return entry.is_special && skip_special ? nullptr : &entry;
  }
  std::string_view Bytes(const Entry& entry) const {
    return {bytes_.data() + entry.begin, entry.size};
  }

 private:
  static constexpr size_t kBlock = 16;

  std::vector<Entry> entries_;  // by id
  std::string bytes_;           // and kBlock more
};

}  // namespace skein
