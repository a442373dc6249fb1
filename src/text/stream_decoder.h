#pragma once

#include <memory>
#include <string>

#include "text/tokenizer.h"

namespace skein {

// Turns a growing list of ids into text, piece by piece: the pieces, put together with Finish's,
// equal Tokenizer::Decode of all ids, and none ends inside a character. A token costs time by its
// own length only. One thread.
//
// A run of byte-fallback tokens (<0xNN>) is held back until it ends: whether its bytes are text or
// all U+FFFD is known only then.
class StreamDecoder {
 public:
  // `tokenizer` must outlive the decoder.
  StreamDecoder(const Tokenizer* tokenizer, bool skip_special_tokens);

  // The text that is complete with this token; often a word, sometimes empty.
  std::string Push(TokenId id);
  // What is left, incomplete characters as U+FFFD. The decoder is then empty.
  std::string Finish();

 private:
  std::unique_ptr<TextStream> stream_;
};

}  // namespace skein
