#pragma once

#include <array>
#include <memory>
#include <string>
#include <unordered_map>

#include "text/tokenizer/models/model.h"

namespace skein {

// Unigram language model (Kudo, 2018): the segmentation with the best sum of scores, found by
// dynamic programming over the bytes of a piece; O(bytes x longest token).
class Unigram final : public Model {
 public:
  // scores[id] is the score of tokens[id]. kInvalidArgument if unk_id is not a token.
  struct Spec {
    std::vector<std::string> tokens;
    std::vector<double> scores;
    std::optional<TokenId> unk_id;
    bool byte_fallback = false;
  };
  static Result<std::unique_ptr<const Model>> Create(Spec spec);

  Status Tokenize(std::string_view piece, std::vector<PieceToken>* tokens) const override;
  size_t num_tokens() const override { return scores_.size(); }
  TokenId max_id() const override { return vocabulary_.max_id(); }
  std::optional<TokenId> TokenToId(std::string_view token) const override {
    return vocabulary_.TokenToId(token);
  }
  std::string_view IdToToken(TokenId id) const override { return vocabulary_.IdToToken(id); }
  bool is_unknown_text(TokenId id) const override { return unk_id_ == id; }

 private:
  // The best segmentation of the bytes up to an end: its score, its last token and the beginning of
  // that token.
  struct Best {
    double score = 0;
    int64_t begin = -1;  // -1: no segmentation yet
    TokenId id = 0;
  };

  explicit Unigram(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  void AddToTrie(std::string_view token, TokenId id);
  Status FindBest(std::string_view piece, std::vector<Best>* best) const;
  Status Emit(std::string_view piece, size_t begin, size_t end,
              std::vector<PieceToken>* tokens) const;

  Vocabulary vocabulary_;
  std::vector<double> scores_;
  double unk_score_ = 0;
  std::optional<TokenId> unk_id_;
  std::optional<std::array<TokenId, 256>> byte_ids_;   // of <0x00>...; set only with byte_fallback
  std::unordered_map<uint64_t, uint32_t> trie_edges_;  // node << 8 | byte -> node
  std::vector<TokenId> trie_ids_{-1};                  // by node; -1: no token ends there
};

}  // namespace skein
