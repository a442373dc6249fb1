#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "skein/request.h"

namespace skein {

// No vocabulary has this many ids. A larger id means a broken file and would need a large table.
inline constexpr TokenId kMaxTokenId = 1 << 24;

// A token, and the bytes [begin, end) of the piece that it stands for.
struct PieceToken {
  TokenId id;
  uint32_t begin, end;
};

// A vocabulary: strings and ids. Immutable.
class Vocabulary {
 public:
  // kInvalidArgument for an id below 0 or above kMaxTokenId, and for two tokens with the same id.
  static Result<Vocabulary> Create(std::vector<std::pair<std::string, TokenId>> entries);

  size_t num_tokens() const { return ids_.size(); }
  TokenId max_id() const { return static_cast<TokenId>(tokens_.size()) - 1; }
  std::optional<TokenId> TokenToId(std::string_view token) const;
  std::string_view IdToToken(TokenId id) const;  // empty for a hole or an id out of range

 private:
  std::vector<std::string> tokens_;
  std::unordered_map<std::string_view, TokenId> ids_;  // keys lie in tokens_
};

// A model other than byte-pair encoding: it turns pieces of a text into tokens. Immutable.
class Model {
 public:
  virtual ~Model() = default;

  // Appends the tokens of a piece (valid UTF-8, not empty). kInvalidArgument if there are none and
  // the vocabulary has no unknown token.
  virtual Status Tokenize(std::string_view piece, std::vector<PieceToken>* tokens) const = 0;

  virtual size_t num_tokens() const = 0;
  virtual TokenId max_id() const = 0;
  virtual std::optional<TokenId> TokenToId(std::string_view token) const = 0;
  virtual std::string_view IdToToken(TokenId id) const = 0;
  // Whether the id is the model's unknown token and the model treats this token as the text it
  // replaces.
  virtual bool is_unknown_text(TokenId) const { return false; }
};

}  // namespace skein
