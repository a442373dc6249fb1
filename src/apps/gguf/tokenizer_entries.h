#pragma once

#include <string>

#include "base/result.h"
#include "io/gguf_writer.h"
#include "model/config/config.h"

namespace skein {

// Adds the tokenizer of a model's directory and its chat template: tokenizer.*. Byte-level BPE
// becomes "gpt2", with the name of its pre-tokenizer. SentencePiece's BPE becomes "llama", with
// scores that give the same merges. Rows of the embedding without a token get unused tokens.
// kUnsupported names the part of tokenizer.json that GGUF cannot express.
Status AddTokenizerEntries(const std::string& dir, const ModelConfig& config, GgufEntries* entries);

}  // namespace skein
