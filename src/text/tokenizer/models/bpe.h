#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "skein/request.h"
#include "text/tokenizer/models/byte_alphabet.h"
#include "text/tokenizer/models/cut_table.h"
#include "text/tokenizer/models/id_writer.h"
#include "text/tokenizer/models/merge_table.h"
#include "text/tokenizer/models/token_table.h"
#include "text/tokenizer/models/word_cache.h"

namespace skein {

// The BPE model as a tokenizer.json describes it. The caller owns the texts.
struct BpeSpec {
  std::vector<std::pair<std::string_view, TokenId>> vocab;
  std::vector<std::pair<std::string_view, std::string_view>> merges;  // best first
  std::optional<std::string> unk_token;
  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
};

// Byte-pair encoding: splits a piece into characters (or bytes) and applies the best merge until
// none is left. Ids equal the reference's, even if stale entries of the reference's queue change
// its result. O(n log n) in the length of a piece. Immutable, except for a bounded cache of recent
// words that threads share without waiting for each other.
class Bpe {
 public:
  // kInvalidArgument for merges of tokens that are not in the vocabulary, for negative ids and for
  // other invalid specs.
  static Result<Bpe> Create(const BpeSpec& spec);

  // Whether EncodeBytes may be used: each of the 256 letters of the byte alphabet is in the
  // vocabulary or is dropped by the model.
  bool can_encode_bytes() const { return can_encode_bytes_; }

  // Appends the ids of a piece (valid UTF-8, not empty).
  void Encode(std::string_view piece, IdWriter* out) const { EncodeCached(piece, 0, 0, out); }
  // Encode for a piece that is given as bytes, not as letters of the byte alphabet. `num_readable`
  // >= bytes.size() is the number of readable bytes at bytes.data(). REQUIRES: can_encode_bytes().
  void EncodeBytes(std::string_view bytes, size_t num_readable, IdWriter* out) const {
    EncodeCached(bytes, num_readable, 1, out);
  }

  // The number of tokens. If there are unused ids (holes), it is below the largest id + 1.
  size_t num_tokens() const { return tokens_.num_tokens(); }
  TokenId max_id() const { return static_cast<TokenId>(tokens_.num_ids()) - 1; }
  std::optional<TokenId> TokenToId(std::string_view token) const { return tokens_.Find(token); }
  // Empty for a hole or an id out of range.
  std::string_view IdToToken(TokenId id) const { return tokens_.Text(id); }

 private:
  using ShortWords = WordCache<2, 1, 14>;  // up to 15 bytes and 3 ids; 1 MB
  using LongWords = WordCache<8, 7, 11>;   // up to 63 bytes and 15 ids; 0.5 MB

  Bpe() : tokens_(0, 0) {}
  Status AddVocab(const BpeSpec& spec);
  Status AddMerges(const BpeSpec& spec);
  Status AddAlphabets(const BpeSpec& spec);
  void AddCuts(const BpeSpec& spec);
  // `bytes` is 1 for EncodeBytes and 0 for Encode.
  void EncodeCached(std::string_view word, size_t num_readable, unsigned bytes,
                    IdWriter* out) const {
    if (word.size() > ShortWords::Key::kMaxBytes) return EncodeLong(word, bytes, out);
    const ShortWords::Key key = num_readable >= sizeof(ShortWords::Key)
                                    ? ShortWords::Key::Readable(word, bytes)
                                    : ShortWords::Key(word, bytes);
    const uint64_t hash = key.Hash();
    if (!short_words_->Find(key, hash, out)) EncodeNew(word, bytes, key, hash, out);
  }
  void EncodeLong(std::string_view word, unsigned bytes, IdWriter* out) const;
  // Encodes the parts of a word between cuts that do not change the ids.
  void EncodeParts(std::string_view word, unsigned bytes, std::vector<TokenId>* ids) const;
  void EncodeNew(std::string_view word, unsigned bytes, const ShortWords::Key& key, uint64_t hash,
                 IdWriter* out) const;
  // Encodes without the cache.
  void EncodeWord(std::string_view word, unsigned bytes, std::vector<TokenId>* ids) const;
  void SplitCharacters(std::string_view piece, std::vector<TokenId>* ids) const;
  void MergeShort(std::vector<TokenId>* ids) const;
  void MergeLong(std::vector<TokenId>* ids) const;

  TokenTable tokens_;
  MergeTable merges_;
  TokenTable byte_words_{0, 0};        // keyed by the bytes that a token spells
  std::optional<CutTable> byte_cuts_;  // for EncodeBytes, if all letters are in the vocabulary
  std::optional<CutTable>
      char_cuts_;  // for Encode, if every character is in the vocabulary or falls back to bytes
  // Id of each letter of the byte alphabet; -1: not in the vocabulary.
  std::array<TokenId, 256> letter_ids_{};
  std::array<TokenId, 256> fallback_ids_{};  // ids of <0x00>...<0xFF>; -1: not in the vocabulary
  std::optional<TokenId> unk_id_;
  bool can_encode_bytes_ = false;
  bool has_empty_token_ = false;
  bool fuse_unk_ = false;
  bool byte_fallback_ = false;
  bool ignore_merges_ = false;
  std::unique_ptr<ShortWords> short_words_;
  std::unique_ptr<LongWords> long_words_;
};

}  // namespace skein
