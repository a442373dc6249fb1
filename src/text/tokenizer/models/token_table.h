#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skein/request.h"

namespace skein {

// Maps tokens to ids and back: one string with all tokens end to end, and a hash table with open
// addressing. Immutable once built.
class TokenTable {
 public:
  // Makes room for ids below `num_ids`. `num_bytes`: about the total length of the tokens.
  TokenTable(size_t num_ids, size_t num_bytes);

  enum class AddResult { kAdded, kIdTaken, kTokenTaken };
  // REQUIRES: 0 <= id < num_ids. At most num_ids tokens.
  AddResult Add(std::string_view token, TokenId id);

  size_t num_ids() const { return spans_.size(); }
  size_t num_tokens() const { return num_tokens_; }
  bool Has(TokenId id) const {
    return id >= 0 && static_cast<size_t>(id) < spans_.size() && spans_[id].size != kHole;
  }
  // Empty for a hole or an id out of range.
  std::string_view Text(TokenId id) const {
    if (!Has(id)) return {};
    return std::string_view(text_).substr(spans_[id].begin, spans_[id].size);
  }
  std::optional<TokenId> Find(std::string_view token) const;

 private:
  static constexpr uint32_t kHole = ~uint32_t{0};
  struct Span {
    uint32_t begin = 0, size = kHole;
  };
  struct Slot {
    uint32_t tag = 0;  // bits of the hash
    TokenId id = -1;   // -1: free
  };
  // The slot that holds the token, or a free slot for it.
  size_t FindSlot(std::string_view token, uint32_t* tag) const;

  std::string text_;
  std::vector<Span> spans_;  // by id
  std::vector<Slot> slots_;  // the size is a power of two; at most two thirds are used
  size_t num_tokens_ = 0;
};

}  // namespace skein
