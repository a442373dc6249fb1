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
