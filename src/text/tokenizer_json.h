#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/char_classes.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"

namespace skein {

// What a tokenizer.json and tokenizer_config.json describe, built.
struct TokenizerParts {
  std::shared_ptr<const CharClasses> classes;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Bpe bpe;
  AddedTokens added_tokens;
  Decoder decoder;
  std::vector<TokenId> prefix_ids, suffix_ids;  // of add_special_tokens
  std::optional<TokenId> bos_id, eos_id, pad_id;
};

// Reads `model_dir`/tokenizer.json and, where it is there, tokenizer_config.json. A component
// outside the supported subset is kUnsupported by name; a broken file kInvalidArgument; a missing
// one kNotFound. `truncation` and `padding` of the file are settings of training and are not used.
Result<TokenizerParts> LoadTokenizerParts(const std::string& model_dir);

}  // namespace skein
