#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/gguf_metadata.h"

namespace skein {

struct GgufTokenizerFiles {
  std::string tokenizer_json;
  std::string tokenizer_config_json;  // with the chat template, where the file has one
  int64_t num_tokens = 0;
};

// A tokenizer.ggml.pre: what becomes of a text before the merges.
struct GgufPreTokenizer {
  const char* name;
  nlohmann::ordered_json (*cuts)();  // as tokenizer.json says them
  bool composes = false;             // the text is normalized to NFC
  bool ignores_merges = false;       // a piece that is a token is one, whatever the merges say
  bool adds_bos = false;             // unless the file says otherwise
};

// All pre-tokenizers that are known.
std::span<const GgufPreTokenizer> GgufPreTokenizers();

// tokenizer.ggml.token_type
enum GgufTokenType : int32_t {
  kGgufNormal = 1,
  kGgufUnknown,
  kGgufControl,
  kGgufUserDefined,
  kGgufUnused,
  kGgufByte,
};

// The merges of a SentencePiece model: every pair of tokens that together are a token, the best
// score first; among equal ones the order of the tokens, then of the pairs' ids.
// REQUIRES: a score for each token.
struct GgufMerge {
  size_t whole, left, right;  // ids
};
std::vector<GgufMerge> MergesOfScores(std::span<const std::string_view> tokens,
                                      std::span<const double> scores);

// The tokenizer of a GGUF file (its metadata tokenizer.*) in HuggingFace's format. Control tokens
// become special added tokens, user-defined ones added tokens. A tokenizer model or pre-tokenizer
// that is not known is kUnsupported, by name; errors name the metadata key.
Result<GgufTokenizerFiles> ReadGgufTokenizer(const GgufMetadata& metadata);

}  // namespace skein
