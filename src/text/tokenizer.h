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

// Decoding in progress. One thread; must not outlive its tokenizer.
class TextStream {
 public:
  virtual ~TextStream() = default;
  // Appends the text that is complete with this token: whole characters, often none.
  virtual void Push(TokenId id, std::string* out) = 0;
  // Appends what is left, incomplete characters as U+FFFD. The stream is then empty.
  virtual void Finish(std::string* out) = 0;
};

// The part of a text that a token stands for: code points [begin, end), as the reference's, whose
// alignment it follows. {0, 0} for special tokens that the post-processor adds.
struct TokenOffsets {
  uint32_t begin, end;
  bool operator==(const TokenOffsets&) const = default;
};

// How an encoding is made to fit. Special tokens that are added count and stay.
struct Truncation {
  enum class Strategy {
    kLongestFirst,  // of a pair: from the longer until both are as long, then from both
    kOnlyFirst,
    kOnlySecond,
  };
  enum class Direction { kRight, kLeft };  // where tokens go
  size_t max_length = 0;                   // tokens
  Strategy strategy = Strategy::kLongestFirst;
  Direction direction = Direction::kRight;
};

struct EncodeOptions {
  bool add_special_tokens = true;
  bool with_offsets = false;  // they cost several times what the ids cost
  std::optional<Truncation> truncation;
};

// One text, or a pair of them (a question and a passage).
struct EncodeInput {
  std::string_view text;
  std::optional<std::string_view> pair;
};

struct Encoding {
  std::vector<TokenId> ids;
  std::vector<int32_t> type_ids;      // [ids.size()]: which text, as the model was taught it
  std::vector<uint8_t> is_special;    // [ids.size()]: 1 for what the post-processor added
  std::vector<TokenOffsets> offsets;  // [ids.size()] if asked for, else empty
};

// An inference-only tokenizer built from a HuggingFace tokenizer.json: ids equal those of the
// `tokenizers` library. Immutable after Load, no locks; every member may run on any thread.
class Tokenizer {
 public:
  // Reads tokenizer.json and tokenizer_config.json. A component outside the supported subset is
  // refused by name (kUnsupported); tokens never change silently.
  static Result<std::unique_ptr<Tokenizer>> Load(const std::string& model_dir);
  virtual ~Tokenizer() = default;

  // Appends the ids of `text` to *ids. Invalid UTF-8 is kInvalidArgument. With add_special_tokens
  // the post-processor's BOS/EOS are added.
  virtual Status Encode(std::string_view text, bool add_special_tokens,
                        std::vector<TokenId>* ids) const = 0;

  // Fills *encoding with the encoding of a text or a pair. kInvalidArgument for invalid UTF-8 and
  // for a truncation that is impossible: max_length below the number of special tokens, or the one
  // text that may be cut shorter than what has to go. kUnsupported by tokenizers that have none.
  virtual Status EncodeFull(const EncodeInput& input, const EncodeOptions& options,
                            Encoding* encoding) const;

  // The text of `ids`; incomplete characters become U+FFFD. Unknown ids give nothing.
  virtual std::string Decode(std::span<const TokenId> ids, bool skip_special_tokens) const = 0;

  // A decoding, token by token, whose pieces together equal Decode of all ids.
  virtual std::unique_ptr<TextStream> NewTextStream(bool skip_special_tokens) const = 0;

  // Ids above the largest in the vocabulary do not exist; there may be holes.
  virtual int32_t vocab_size() const = 0;  // largest id + 1
  virtual std::optional<TokenId> TokenToId(std::string_view token) const = 0;
  // The token as the vocabulary spells it, an added one as the normalizer does; empty for a hole.
  virtual std::string_view IdToToken(TokenId id) const = 0;
  // The bytes that the token contributes inside a text (a half character for some).
  virtual std::string TokenBytes(TokenId id) const = 0;
  virtual bool IsSpecial(TokenId id) const = 0;

  virtual std::optional<TokenId> bos_id() const = 0;
  virtual std::optional<TokenId> eos_id() const = 0;
  virtual std::optional<TokenId> pad_id() const = 0;
};

}  // namespace skein
