#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/models/byte_alphabet.h"
#include "text/tokenizer/normalizer.h"

namespace skein {

// The decoder of a tokenizer.json: turns tokens, one after another, into text. Immutable; what is
// remembered between tokens lies in a State.
class Decoder {
 public:
  struct ByteLevel {};     // letters of the byte alphabet are bytes
  struct ByteFallback {};  // runs of <0xNN> are bytes
  struct Fuse {};          // all tokens become one
  struct Strip {
    std::string content;  // one character
    size_t start;         // how many of it at most go from the start
  };
  struct Metaspace {
    std::string replacement;
    bool drop_in_first;  // in the first token they vanish, else they are spaces
  };
  struct WordPiece {     // words with spaces between them
    std::string prefix;  // of a token that continues a word
    bool cleanup;        // no space before punctuation and contractions
  };
  using Step =
      std::variant<ReplaceRule, ByteLevel, ByteFallback, Fuse, Strip, Metaspace, WordPiece>;

  // Of one stream of tokens.
  class State {
    friend class Decoder;
    struct StepState {
      std::string pending;  // bytes that are no text yet
      size_t count = 0;     // tokens seen, or characters stripped
      bool done = false;    // a strip met something else
    };
    std::vector<StepState> steps_;
    size_t num_tokens_ = 0;
  };

  // kUnsupported for an order of steps that cannot be applied as the tokens come.
  static Result<Decoder> Create(std::vector<Step> steps);
  // Tokens with spaces between them: what a tokenizer.json without a decoder means.
  static Decoder Joining();

  // Whether the text is the bytes of all tokens (TokenBytes) end to end, made valid UTF-8.
  bool joins_bytes() const {
    return !joins_ && steps_.size() == 1 && std::holds_alternative<ByteLevel>(steps_[0]);
  }

  State NewState() const;
  // Appends the text that is complete with this token.
  void Push(std::string_view token, State* state, std::string* out) const;
  // Appends what is left, incomplete characters as U+FFFD. The state is then as new.
  void Finish(State* state, std::string* out) const;

  // Appends the bytes of a token. REQUIRES: joins_bytes().
  void AppendByteLevel(std::string_view token, std::string* out) const {
    if (!alphabet_.AppendUnmapped(token, out)) out->append(token);
  }
  // The bytes of a token inside a text.
  std::string TokenBytes(std::string_view token) const;

 private:
  Decoder() = default;
  void Feed(size_t step, std::string token, State* state, std::string* out) const;
  void FlushByteFallback(size_t step, State* state, std::string* out) const;

  std::vector<Step> steps_;
  std::vector<bool> fused_;  // [steps_.size()]: the step sees parts of one single token
  bool joins_ = false;
  ByteAlphabet alphabet_;
};

}  // namespace skein
