#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/request.h"

namespace skein {

// The bytes of each token of a byte-level vocabulary, in one string, so that decoding a token is a
// lookup and a copy. Immutable once built.
class TokenBytesTable {
 public:
  void Reserve(size_t num_ids, size_t num_bytes);
  // Adds the token of the next id; the first id is 0. An empty token gives no text.
  void Add(std::string_view bytes, bool is_special);
  // Appends spare bytes, so that whole blocks can be read. REQUIRES: called after the last Add.
  void Finish() { bytes_.append(kBlock, '\0'); }

  // The text of all ids; bytes that are not valid UTF-8 become U+FFFD. Unknown ids give no text.
  std::string Decode(std::span<const TokenId> ids, bool skip_special) const;

  // Find returns nullptr for an unknown id, and for a special id if special ids are skipped.
  struct Entry {
    uint32_t begin;
    uint32_t size : 30;
    uint32_t is_special : 1;
    uint32_t is_text : 1;  // valid UTF-8 that consists of whole characters
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
  std::string bytes_;           // with kBlock spare bytes at the end
};

}  // namespace skein
