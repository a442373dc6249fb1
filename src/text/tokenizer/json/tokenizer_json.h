#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/decoder.h"
#include "text/tokenizer/models/bpe.h"
#include "text/tokenizer/models/bpe_pieces.h"
#include "text/tokenizer/models/model.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/post_processor.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/unicode/char_classes.h"

namespace skein {

// The components that a tokenizer.json and a tokenizer_config.json describe.
struct TokenizerParts {
  std::shared_ptr<const CharClasses> classes;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Bpe bpe;  // empty if the model is not BPE
  BpeUnknowns bpe_unknowns;
  std::unique_ptr<const Model> other_model;  // null if the model is BPE
  AddedTokens added_tokens;
  Decoder decoder;
  PostProcessor post_processor;
  std::vector<TokenId> prefix_ids, suffix_ids;  // added by add_special_tokens
  std::optional<TokenId> bos_id, eos_id, pad_id;

  // The id of a token of the model, for every kind of model.
  std::optional<TokenId> ModelTokenToId(std::string_view token) const {
    return other_model ? other_model->TokenToId(token) : bpe.TokenToId(token);
  }
  std::string_view ModelIdToToken(TokenId id) const {
    return other_model ? other_model->IdToToken(id) : bpe.IdToToken(id);
  }
  TokenId model_max_id() const { return other_model ? other_model->max_id() : bpe.max_id(); }
  // Whether only the aligned pipeline (pipeline.h) gives the tokens of the reference.
  bool needs_pipeline() const {
    return other_model != nullptr || !normalizer.is_simple() || pre_tokenizer.needs_alignment() ||
           (normalizer.may_drop() && pre_tokenizer.depends_on_start());
  }
};

// Reads tokenizer.json in `model_dir` and, if it exists, tokenizer_config.json. kUnsupported names
// a component outside the supported subset; kInvalidArgument for a broken file, kNotFound for a
// missing one. `truncation` and `padding` are settings of training and are ignored.
Result<TokenizerParts> LoadTokenizerParts(const std::string& model_dir);

}  // namespace skein
