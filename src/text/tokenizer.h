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
  // Appends the rest, with incomplete characters as U+FFFD. The stream is empty afterwards.
  virtual void Finish(std::string* out) = 0;
};

// The part of a text that a token stands for: code points [begin, end), with the alignment of the
// reference. {0, 0} for special tokens that the post-processor adds.
struct TokenOffsets {
  uint32_t begin, end;
  bool operator==(const TokenOffsets&) const = default;
};

// How an encoding is cut to a length. Added special tokens count and are kept.
struct Truncation {
  enum class Strategy {
    kLongestFirst,  // of a pair: from the longer text until both are equally long, then from both
    kOnlyFirst,
    kOnlySecond,
  };
  enum class Direction { kRight, kLeft };  // the side on which tokens are cut
  size_t max_length = 0;                   // tokens
  Strategy strategy = Strategy::kLongestFirst;
  Direction direction = Direction::kRight;
};

// Which special tokens in a text are read as text, as if the tokenizer did not have them.
struct SpecialAsText {
  bool all = false;
  std::span<const size_t> at;  // or the tokens that begin at these bytes, ascending
};

struct EncodeOptions {
  bool add_special_tokens = true;
  bool with_offsets = false;  // offsets cost several times as much time as ids
  std::optional<Truncation> truncation;
  // Special tokens in the texts are read as text (split_special_tokens).
  bool special_as_text = false;
};

// A text, or a pair of texts (such as a question and a passage).
struct EncodeInput {
  std::string_view text;
  std::optional<std::string_view> pair;
};

struct Encoding {
  std::vector<TokenId> ids;
  std::vector<int32_t> type_ids;      // the type of each token's text, as in training
  std::vector<uint8_t> is_special;    // 1 for a token that the post-processor added
  std::vector<TokenOffsets> offsets;  // [ids.size()] if requested, otherwise empty
};

// An inference-only tokenizer built from a HuggingFace tokenizer.json. Its ids equal those of the
// `tokenizers` library. Immutable after Load, no locks; every member may run on any thread.
class Tokenizer {
 public:
  // Reads tokenizer.json and tokenizer_config.json. kUnsupported names a component outside the
  // supported subset, so that tokens never change silently.
  static Result<std::unique_ptr<Tokenizer>> Load(const std::string& model_dir);
  virtual ~Tokenizer() = default;

  // Appends the ids of `text` to *ids. Invalid UTF-8 gives kInvalidArgument. With
  // add_special_tokens the post-processor's BOS and EOS are added.
  virtual Status Encode(std::string_view text, bool add_special_tokens,
                        std::vector<TokenId>* ids) const = 0;

  // Like Encode, with some of the text's special tokens read as text.
  virtual Status EncodeWith(std::string_view text, const SpecialAsText& as_text,
                            bool add_special_tokens, std::vector<TokenId>* ids) const;
  // The bytes at which a special token begins in `text`, ascending.
  virtual std::vector<size_t> FindSpecialTokens(std::string_view text) const;
  // The most bytes of a text that one token can stand for; 0: no limit is known.
  virtual size_t max_bytes_per_token() const { return 0; }

  // Encodes a text or a pair into *encoding. kInvalidArgument for invalid UTF-8 and for an
  // impossible truncation: max_length is below the number of special tokens, or the only text that
  // may be cut is too short. kUnsupported by tokenizers without this function.
  virtual Status EncodeFull(const EncodeInput& input, const EncodeOptions& options,
                            Encoding* encoding) const;

  // Returns the text of `ids`; incomplete characters become U+FFFD. Unknown ids give no text.
  virtual std::string Decode(std::span<const TokenId> ids, bool skip_special_tokens) const = 0;

  // Starts decoding token by token. The pieces together equal Decode of all ids.
  virtual std::unique_ptr<TextStream> NewTextStream(bool skip_special_tokens) const = 0;

  // There may be unused ids (holes) below the largest id.
  virtual int32_t vocab_size() const = 0;  // largest id + 1
  virtual std::optional<TokenId> TokenToId(std::string_view token) const = 0;
  // The token's spelling in the vocabulary; for an added token, its spelling after the normalizer;
  // empty for a hole.
  virtual std::string_view IdToToken(TokenId id) const = 0;
  // The bytes that the token contributes inside a text; they may be a part of a character.
  virtual std::string TokenBytes(TokenId id) const = 0;
  virtual bool IsSpecial(TokenId id) const = 0;

  virtual std::optional<TokenId> bos_id() const = 0;
  virtual std::optional<TokenId> eos_id() const = 0;
  virtual std::optional<TokenId> pad_id() const = 0;
};

}  // namespace skein
