#pragma once

#include <memory>
#include <string>

#include "text/tokenizer/models/model.h"

namespace skein {

// WordPiece: takes the longest known token, from left to right (Schuster and Nakajima, 2012).
class WordPiece final : public Model {
 public:
  struct Spec {
    std::string unk_token;                  // the token of a word that cannot be spelt
    std::string continuing_subword_prefix;  // before every token that does not begin a word
    size_t max_input_chars_per_word = 0;    // a longer word is unknown
  };

  // kInvalidArgument if unk_token is not in the vocabulary.
  static Result<std::unique_ptr<const Model>> Create(Vocabulary vocabulary, Spec spec);

  Status Tokenize(std::string_view piece, std::vector<PieceToken>* tokens) const override;
  size_t num_tokens() const override { return vocabulary_.num_tokens(); }
  TokenId max_id() const override { return vocabulary_.max_id(); }
  std::optional<TokenId> TokenToId(std::string_view token) const override {
    return vocabulary_.TokenToId(token);
  }
  std::string_view IdToToken(TokenId id) const override { return vocabulary_.IdToToken(id); }

 private:
  WordPiece(Vocabulary vocabulary, Spec spec, TokenId unk_id);

  Vocabulary vocabulary_;
  Spec spec_;
  TokenId unk_id_;
  size_t max_token_bytes_ = 0;  // no token is longer
};

// A model whose tokens are whole words; other words get the unknown token.
class WordLevel final : public Model {
 public:
  WordLevel(Vocabulary vocabulary, std::optional<TokenId> unk_id)
      : vocabulary_(std::move(vocabulary)), unk_id_(unk_id) {}

  Status Tokenize(std::string_view piece, std::vector<PieceToken>* tokens) const override;
  size_t num_tokens() const override { return vocabulary_.num_tokens(); }
  TokenId max_id() const override { return vocabulary_.max_id(); }
  std::optional<TokenId> TokenToId(std::string_view token) const override {
    return vocabulary_.TokenToId(token);
  }
  std::string_view IdToToken(TokenId id) const override { return vocabulary_.IdToToken(id); }

 private:
  Vocabulary vocabulary_;
  std::optional<TokenId> unk_id_;
};

}  // namespace skein
