#include "text/stream_decoder.h"

namespace skein {

StreamDecoder::StreamDecoder(const Tokenizer* tokenizer, bool skip_special_tokens)
    : stream_(tokenizer->NewTextStream(skip_special_tokens)) {}

std::string StreamDecoder::Push(TokenId id) {
  std::string piece;
  stream_->Push(id, &piece);
  return piece;
}

std::string StreamDecoder::Finish() {
  std::string piece;
  stream_->Finish(&piece);
  return piece;
}

}  // namespace skein
