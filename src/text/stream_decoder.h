#pragma once

#include <memory>
#include <string>

#include "text/tokenizer.h"

namespace skein {

// Turns a growing list of ids into text, piece by piece. The pieces, including that of Finish,
// together equal Tokenizer::Decode of all ids. No piece ends inside a character. A token costs time
// proportional to its own length. One thread.
//
// A run of byte-fallback tokens (<0xNN>) is held back until it ends. Only then is it known whether
// its bytes are valid text; otherwise each byte becomes U+FFFD.
class StreamDecoder {
 public:
  // `tokenizer` must outlive the decoder.
  StreamDecoder(const Tokenizer* tokenizer, bool skip_special_tokens);

  // Returns the text that this token completes; often a word, sometimes nothing.
  std::string Push(TokenId id);
  // Returns the rest, with incomplete characters as U+FFFD. The decoder is empty afterwards.
  std::string Finish();

 private:
  std::unique_ptr<TextStream> stream_;
};

}  // namespace skein
