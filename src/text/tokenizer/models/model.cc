#include "text/tokenizer/models/model.h"

#include <algorithm>

namespace skein {
namespace {}  // namespace

Result<Vocabulary> Vocabulary::Create(std::vector<std::pair<std::string, TokenId>> entries) {
  const auto invalid = [](const std::string& what) {
    return Status(StatusCode::kInvalidArgument, "tokenizer.json: model: " + what);
  };
  Vocabulary vocabulary;
  TokenId max_id = -1;
  for (const auto& [token, id] : entries) {
    if (id < 0 || id > kMaxTokenId) {
      return invalid("token '" + token + "' has the id " + std::to_string(id) +
                     "; allowed are 0 to " + std::to_string(kMaxTokenId));
    }
    max_id = std::max(max_id, id);
  }
  std::vector<bool> taken(max_id + 1, false);
  vocabulary.tokens_.resize(max_id + 1);
  for (auto& [token, id] : entries) {
    if (taken[id]) {
      return invalid("the tokens '" + vocabulary.tokens_[id] + "' and '" + token +
                     "' share the id " + std::to_string(id));
    }
    taken[id] = true;
    vocabulary.tokens_[id] = std::move(token);
    // The last of equal tokens counts, as in the reference.
    vocabulary.ids_[vocabulary.tokens_[id]] = id;
  }
  return vocabulary;
}

std::optional<TokenId> Vocabulary::TokenToId(std::string_view token) const {
  const auto it = ids_.find(token);
  if (it == ids_.end()) return std::nullopt;
  return it->second;
}

std::string_view Vocabulary::IdToToken(TokenId id) const {
  if (id < 0 || static_cast<size_t>(id) >= tokens_.size()) return {};
  return tokens_[id];
}

}  // namespace skein
