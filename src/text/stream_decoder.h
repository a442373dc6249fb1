#pragma once

#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace skein {

// Turns a growing list of ids into text, piece by piece: the pieces, put together with Finish's,
// equal Tokenizer::Decode of all ids, and none ends inside a character. One thread.
class StreamDecoder {
 public:
  // `tokenizer` must outlive the decoder.
  StreamDecoder(const Tokenizer* tokenizer, bool skip_special_tokens);

  // The text that is complete with this token; often a word, sometimes empty.
  std::string Push(TokenId id);
  // What is left, incomplete characters as U+FFFD. The decoder is then empty.
  std::string Finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  std::vector<TokenId> ids_;    // the window whose text is not yet settled
  size_t num_settled_ = 0;      // ids_[0, num_settled_) have been emitted
  std::string pending_prefix_;  // text of ids_[0, num_settled_)
};

}  // namespace skein
