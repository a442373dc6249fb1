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
  std::string tokenizer_config_json;  // contains the chat template if the file has one
  int64_t num_tokens = 0;
};

// A pre-tokenizer by its name in tokenizer.ggml.pre: how a text is cut before the merges.
struct GgufPreTokenizer {
  const char* name;
  nlohmann::ordered_json (*cuts)();  // makes the cuts in the form of tokenizer.json
  bool composes = false;             // the text is normalized to NFC
  bool ignores_merges = false;       // a piece that is a token stays whole, whatever the merges say
  bool adds_bos = false;             // the default if the file does not say
  // The separators between two texts of an encoder. 0: the tokenizer is a decoder's.
  int num_separators = 0;
};

// All supported pre-tokenizers.
std::span<const GgufPreTokenizer> GgufPreTokenizers();

// The merges of a SentencePiece model: every pair of tokens that together form a token, best score
// first. Merges of equal scores are in the order of the tokens, then of the pairs' ids.
// REQUIRES: a score for each token.
struct GgufMerge {
  size_t whole, left, right;  // token ids
};
std::vector<GgufMerge> MergesOfScores(std::span<const std::string_view> tokens,
                                      std::span<const double> scores);

// Converts the tokenizer of a GGUF file (its metadata tokenizer.*) to HuggingFace's format: merges
// of bytes ("gpt2"), SentencePiece's merges ("llama") and unigrams ("t5"), and WordPiece ("bert").
// Control tokens become special added tokens, user-defined tokens become added tokens.
// kUnsupported, with the name, for a tokenizer model or pre-tokenizer that is not supported; errors
// name the metadata key.
Result<GgufTokenizerFiles> ReadGgufTokenizer(const GgufMetadata& metadata);

}  // namespace skein
