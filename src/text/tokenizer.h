#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "skein/request.h"

namespace skein {

// The decoding of one list of ids. One thread; must not outlive its tokenizer.
class TextStream {
 public:
  virtual ~TextStream() = default;
  // Appends the whole characters that this token completes; often none.
  virtual void Push(TokenId id, std::string* out) = 0;
  // Appends the rest, with incomplete characters as U+FFFD. The stream is then empty.
  virtual void Finish(std::string* out) = 0;
};

// The part of a text that a token stands for: code points [begin, end), aligned as the reference
// aligns them. {0, 0} for special tokens that the post-processor adds.
struct TokenOffsets {
  uint32_t begin, end;
  bool operator==(const TokenOffsets&) const = default;
};

// The rule that cuts an encoding to a length. Added special tokens count and are kept.
struct Truncation {
  enum class Strategy {
    kLongestFirst,  // in a pair: from the longer one until both are equally long, then from both
    kOnlyFirst,
    kOnlySecond,
  };
  enum class Direction { kRight, kLeft };  // the side on which tokens are cut
  size_t max_length = 0;                   // tokens
  Strategy strategy = Strategy::kLongestFirst;
  Direction direction = Direction::kRight;
};

// The special tokens of a text that are read as text, as if the tokenizer did not have them.
struct SpecialAsText {
  bool all = false;
  std::span<const size_t> at;  // or those that begin at these bytes, ascending
};

struct EncodeOptions {
  bool add_special_tokens = true;
  bool with_offsets = false;     // offsets cost several times as much time as ids
  std::optional<Truncation> truncation;
  bool special_as_text = false;  // the texts' own special tokens are text (split_special_tokens)
};

// One text, or a pair of them (a question and a passage).
struct EncodeInput {
  std::string_view text;
  std::optional<std::string_view> pair;
};

struct Encoding {
  std::vector<TokenId> ids;
  std::vector<int32_t> type_ids;      // the type of the text, as in training
  std::vector<uint8_t> is_special;    // 1 for a token that the post-processor added
  std::vector<TokenOffsets> offsets;  // [ids.size()] if asked for, else empty
};

// An inference-only tokenizer built from a HuggingFace tokenizer.json. Its ids equal those of the
// `tokenizers` library. Immutable after Load, no locks; every member may run on any thread.
class Tokenizer {
 public:
  // Reads tokenizer.json and tokenizer_config.json. kUnsupported names a component outside the
  // supported subset; tokens never change silently.
  static Result<std::unique_ptr<Tokenizer>> Load(const std::string& model_dir);
  virtual ~Tokenizer() = default;

  // Appends the ids of `text` to *ids. Invalid UTF-8 gives kInvalidArgument. With
  // add_special_tokens the post-processor's BOS and EOS are added.
  virtual Status Encode(std::string_view text, bool add_special_tokens,
                        std::vector<TokenId>* ids) const = 0;

  // As Encode, but with some of the text's special tokens read as text.
  virtual Status EncodeWith(std::string_view text, const SpecialAsText& as_text,
                            bool add_special_tokens, std::vector<TokenId>* ids) const;
  // The bytes at which a special token begins in `text`, ascending.
  virtual std::vector<size_t> FindSpecialTokens(std::string_view text) const;
  // No token of an encoding stands for more bytes of its text; 0: no limit is known.
  virtual size_t max_bytes_per_token() const { return 0; }

  // Encodes a text or a pair into *encoding. kInvalidArgument for invalid UTF-8 and for an
  // impossible truncation: max_length below the number of special tokens, or too short a text where
  // only one may be cut. kUnsupported by tokenizers without this member.
  virtual Status EncodeFull(const EncodeInput& input, const EncodeOptions& options,
                            Encoding* encoding) const;

  // Returns the text of `ids`; incomplete characters become U+FFFD. Unknown ids give no text.
  virtual std::string Decode(std::span<const TokenId> ids, bool skip_special_tokens) const = 0;

  // Starts a decoding token by token. Its pieces together equal Decode of all ids.
  virtual std::unique_ptr<TextStream> NewTextStream(bool skip_special_tokens) const = 0;

  // Ids may have holes below the largest one.
  virtual int32_t vocab_size() const = 0;  // largest id + 1
  virtual std::optional<TokenId> TokenToId(std::string_view token) const = 0;
  // The token as the vocabulary spells it; an added token as the normalizer spells it; empty for a
  // hole.
  virtual std::string_view IdToToken(TokenId id) const = 0;
  // The bytes that the token contributes inside a text; they may be a part of a character.
  virtual std::string TokenBytes(TokenId id) const = 0;
  virtual bool IsSpecial(TokenId id) const = 0;

  virtual std::optional<TokenId> bos_id() const = 0;
  virtual std::optional<TokenId> eos_id() const = 0;
  virtual std::optional<TokenId> pad_id() const = 0;
};

}  // namespace skein
