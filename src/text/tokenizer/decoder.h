#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/models/byte_alphabet.h"
#include "text/tokenizer/normalizer.h"

namespace skein {

// The decoder of a tokenizer.json: turns tokens into text, one after another. Immutable; a State
// holds what must be remembered between tokens.
class Decoder {
 public:
  struct ByteLevel {};     // tokens spell bytes in the byte alphabet
  struct ByteFallback {};  // runs of tokens <0xNN> spell bytes
  struct Fuse {};          // all tokens become one
  struct Strip {
    std::string content;  // one character
    size_t start;         // at most this many are removed at the start
  };
  struct Metaspace {
    std::string replacement;
    bool drop_in_first;  // removed from the first token; in other tokens they become spaces
  };
  struct WordPiece {     // words with spaces between them
    std::string prefix;  // marks a token that continues a word
    bool cleanup;        // no spaces before punctuation and contractions
  };
  using Step =
      std::variant<ReplaceRule, ByteLevel, ByteFallback, Fuse, Strip, Metaspace, WordPiece>;

  // The state of one stream of tokens.
  class State {
    friend class Decoder;
    struct StepState {
      std::string pending;  // bytes that are not text yet
      size_t count = 0;     // tokens seen, or characters stripped
      bool done = false;    // the strip has met a character that it keeps
    };
    std::vector<StepState> steps_;
    size_t num_tokens_ = 0;
  };

  // kUnsupported if the steps' order cannot be applied token by token.
  static Result<Decoder> Create(std::vector<Step> steps);
  // The decoder of a tokenizer.json that has none: joins tokens with spaces.
  static Decoder Joining();

  // Whether the decoded text is the bytes of all tokens (TokenBytes), joined and made valid UTF-8.
  bool joins_bytes() const {
    return !joins_ && steps_.size() == 1 && std::holds_alternative<ByteLevel>(steps_[0]);
  }

  State NewState() const;
  // Appends the text that this token completes.
  void Push(std::string_view token, State* state, std::string* out) const;
  // Appends the rest, with incomplete characters as U+FFFD, and resets the state.
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
  // [step]: whether an earlier decoder step has joined all tokens into one text.
  std::vector<bool> fused_;
  bool joins_ = false;
  ByteAlphabet alphabet_;
};

}  // namespace skein
