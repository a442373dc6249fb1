#include "text/tokenizer/models/bpe_pieces.h"

#include <algorithm>
#include <cstdio>

#include "base/check.h"
#include "text/unicode/utf8.h"

namespace skein {
namespace {

constexpr uint32_t kByteTokenBytes = 6;  // <0xNN>

}  // namespace

BpePieces::BpePieces(const Bpe* bpe, const BpeUnknowns& unknowns)
    : bpe_(*bpe), unknowns_(unknowns) {
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof(name), "<0x%02X>", byte);
    can_fall_back_[byte] = bpe_.TokenToId(name).has_value();
  }
}

// An unknown character is emitted only before the next known character, after fallback bytes that
// follow it.
std::vector<BpePieces::Symbol> BpePieces::Symbols(std::string_view piece) const {
  std::vector<Symbol> symbols;
  const auto unk_bytes =
      static_cast<uint32_t>(unknowns_.unk_id ? bpe_.IdToToken(*unknowns_.unk_id).size() : 0);
  std::optional<Symbol> waiting;
  for (size_t pos = 0; pos < piece.size();) {
    const size_t begin = pos;
    NextCodePoint(piece, &pos);
    const auto bytes = static_cast<uint32_t>(pos - begin);
    const std::string_view character = piece.substr(begin, bytes);
    if (bpe_.TokenToId(character)) {
      if (waiting) symbols.push_back(*waiting);
      waiting.reset();
      symbols.push_back({bytes, bytes});
    } else if (unknowns_.byte_fallback &&
               std::all_of(character.begin(), character.end(),
                           [this](char c) { return can_fall_back_[static_cast<uint8_t>(c)]; })) {
      symbols.insert(symbols.end(), bytes, {1, kByteTokenBytes});
    } else if (unknowns_.unk_id) {
      if (waiting && unknowns_.fuse_unk) {
        waiting->piece_bytes += bytes;
      } else {
        if (waiting) symbols.push_back(*waiting);
        waiting = Symbol{bytes, unk_bytes};
      }
    }
  }
  if (waiting) symbols.push_back(*waiting);
  return symbols;
}

// The spelling of a merged token is the concatenation of its symbols. So each token gets symbols
// until their total length equals the length of its spelling.
Status BpePieces::Tokenize(std::string_view piece, std::vector<PieceToken>* tokens) const {
  std::vector<TokenId> ids;
  IdWriter out(&ids);
  bpe_.Encode(piece, &out);
  out.Flush();
  const std::vector<Symbol> symbols = Symbols(piece);
  const auto size = static_cast<uint32_t>(piece.size());
  if (ids.size() == 1 && bpe_.IdToToken(ids[0]) == piece) {
    tokens->push_back({ids[0], 0, size});  // a whole piece may be a token without merges
    return Status::Ok();
  }
  uint32_t begin = 0;
  size_t next = 0;
  for (const TokenId id : ids) {
    uint32_t end = begin;
    for (size_t left = bpe_.IdToToken(id).size(); left > 0; ++next) {
      SKEIN_CHECK(next < symbols.size() && symbols[next].token_bytes <= left);
      end += symbols[next].piece_bytes;
      left -= symbols[next].token_bytes;
    }
    tokens->push_back({id, begin, end});
    begin = end;
  }
  return Status::Ok();
}

}  // namespace skein
