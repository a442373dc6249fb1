#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "skein/request.h"
#include "text/byte_alphabet.h"

namespace skein {

// What a tokenizer.json says of its BPE model.
struct BpeSpec {
  std::vector<std::pair<std::string, TokenId>> vocab;
  std::vector<std::pair<std::string, std::string>> merges;  // best first
  std::optional<std::string> unk_token;
  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
};

// Byte-pair encoding: splits a piece into characters (or bytes) and applies the best merge until
// none is left; ids as the reference's, including what it does with stale entries of its queue.
// Immutable. O(n log n) in the length of a piece.
class Bpe {
 public:
  // kInvalidArgument for merges of tokens that are not in the vocabulary, negative ids and the
  // like.
  static Result<Bpe> Create(BpeSpec spec);

  // Whether EncodeBytes may be used: all 256 letters of the byte alphabet are in the vocabulary.
  bool has_byte_alphabet() const { return has_byte_alphabet_; }

  // Appends the ids of a piece (valid UTF-8, not empty).
  void Encode(std::string_view piece, std::vector<TokenId>* ids) const;
  // The same for the bytes that a piece in the byte alphabet spells. REQUIRES: has_byte_alphabet().
  void EncodeBytes(std::string_view bytes, std::vector<TokenId>* ids) const;

  // Number of entries, which is not the largest id + 1 where there are holes.
  size_t num_tokens() const { return token_ids_.size(); }
  TokenId max_id() const { return static_cast<TokenId>(tokens_.size()) - 1; }
  std::optional<TokenId> TokenToId(std::string_view token) const;
  // Empty for a hole or an id out of range.
  std::string_view IdToToken(TokenId id) const;

 private:
  struct Merge {
    uint32_t rank;
    TokenId id;
  };
  struct Symbol;
  struct Candidate;

  Bpe() = default;
  Status Init(BpeSpec spec);
  const Merge* FindMerge(TokenId left, TokenId right) const;
  void MergeAll(std::vector<Symbol>* symbols, std::vector<TokenId>* ids) const;

  std::vector<std::string> tokens_;                          // by id
  std::unordered_map<std::string_view, TokenId> token_ids_;  // keys lie in tokens_
  std::unordered_map<std::string, TokenId> byte_token_ids_;  // by the bytes a token spells
  std::unordered_map<uint64_t, Merge> merges_;               // left << 32 | right
  std::array<TokenId, 256> letter_ids_{};    // of the byte alphabet; valid if has_byte_alphabet_
  std::array<TokenId, 256> fallback_ids_{};  // of <0x00>...<0xFF>; -1: not in the vocabulary
  std::optional<TokenId> unk_id_;
  bool has_byte_alphabet_ = false;
  bool fuse_unk_ = false;
  bool byte_fallback_ = false;
  bool ignore_merges_ = false;
};

}  // namespace skein
