#pragma once

#include "text/tokenizer/models/bpe.h"
#include "text/tokenizer/models/model.h"

namespace skein {

// How a BPE model handles unknown characters.
struct BpeUnknowns {
  std::optional<TokenId> unk_id;
  bool fuse_unk = false;
  bool byte_fallback = false;
};

// Byte-pair encoding as a Model, which returns tokens with the bytes that they stand for. `bpe`
// must outlive it.
class BpePieces final : public Model {
 public:
  BpePieces(const Bpe* bpe, const BpeUnknowns& unknowns);

  Status Tokenize(std::string_view piece, std::vector<PieceToken>* tokens) const override;
  size_t num_tokens() const override { return bpe_.num_tokens(); }
  TokenId max_id() const override { return bpe_.max_id(); }
  std::optional<TokenId> TokenToId(std::string_view token) const override {
    return bpe_.TokenToId(token);
  }
  std::string_view IdToToken(TokenId id) const override { return bpe_.IdToToken(id); }

 private:
  // A symbol before any merge: its size in the piece, and its size in the spelling of its token.
  struct Symbol {
    uint32_t piece_bytes, token_bytes;
  };
  std::vector<Symbol> Symbols(std::string_view piece) const;

  const Bpe& bpe_;
  BpeUnknowns unknowns_;
  bool can_fall_back_[256] = {};  // <0xNN> is in the vocabulary
};

}  // namespace skein
