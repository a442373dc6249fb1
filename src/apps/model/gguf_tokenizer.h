#pragma once

#include <string>

#include "base/result.h"
#include "io/gguf_metadata.h"

namespace skein {

struct GgufTokenizerFiles {
  std::string tokenizer_json;
  std::string tokenizer_config_json;  // with the chat template, where the file has one
  int64_t num_tokens = 0;
};

// The tokenizer of a GGUF file (its metadata tokenizer.*) in HuggingFace's format. Control tokens
// become special added tokens, user-defined ones added tokens. A tokenizer model or pre-tokenizer
// that is not known is kUnsupported, by name; errors name the metadata key.
Result<GgufTokenizerFiles> ReadGgufTokenizer(const GgufMetadata& metadata);

}  // namespace skein
