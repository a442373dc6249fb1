#include "text/added_tokens.h"

#include <algorithm>

#include "text/utf8.h"

namespace skein {
namespace {

// The last character that ends at `end`. REQUIRES: end > 0.
uint32_t CodePointBefore(std::string_view text, size_t end, size_t* begin) {
  size_t pos = end - 1;
  while (IsContinuationByte(text[pos])) --pos;
  *begin = pos;
  return NextCodePoint(text, &pos);
}

bool IsInsideWord(const CharClasses& classes, std::string_view text, size_t begin, size_t end) {
  size_t unused = 0;
  if (begin > 0 && classes.IsWord(CodePointBefore(text, begin, &unused))) return true;
  return end < text.size() && classes.IsWord(NextCodePoint(text, &end));
}

}  // namespace

void AddedTokens::Matcher::Add(std::string_view text, const AddedToken* token) {
  if (text.empty()) return;
  starts_[static_cast<uint8_t>(text[0])] = true;
  uint32_t node = 0;
  for (const char c : text) {
    const auto [it, is_new] =
        nodes_[node].children.emplace(c, static_cast<uint32_t>(nodes_.size()));
    node = it->second;
    if (is_new) nodes_.emplace_back();
  }
  // Of equal patterns the first wins.
  if (nodes_[node].token == nullptr) nodes_[node].token = token;
}

const AddedToken* AddedTokens::Matcher::Match(std::string_view text, size_t pos,
                                              size_t* end) const {
  if (!starts_[static_cast<uint8_t>(text[pos])]) return nullptr;
  const AddedToken* best = nullptr;
  uint32_t node = 0;
  while (pos < text.size()) {
    const auto it = nodes_[node].children.find(text[pos]);
    if (it == nodes_[node].children.end()) break;
    node = it->second;
    ++pos;
    if (nodes_[node].token != nullptr) {
      best = nodes_[node].token;
      *end = pos;
    }
  }
  return best;
}

Result<AddedTokens> AddedTokens::Create(
    std::vector<AddedToken> tokens, size_t num_model_tokens,
    const std::function<std::optional<TokenId>(std::string_view)>& model_token_to_id,
    const Normalizer& normalizer) {
  AddedTokens result;
  result.tokens_.reserve(tokens.size());
  const auto first_free = static_cast<TokenId>(num_model_tokens);
  for (AddedToken& token : tokens) {
    if (token.content.empty() || result.ids_.contains(token.content)) continue;
    // A token of the model keeps its id; others are numbered from the end of the vocabulary on.
    const TokenId id =
        model_token_to_id(token.content).value_or(std::max(result.max_id_ + 1, first_free));
    if (token.id != id) {
      return Status(StatusCode::kInvalidArgument,
                    "tokenizer.json: the added token '" + token.content + "' has the id " +
                        std::to_string(token.id) + ", but its place in the list gives it " +
                        std::to_string(id));
    }
    token.spelling = token.content;
    if (token.normalized) {
      SKEIN_RETURN_IF_ERROR(normalizer.Normalize(token.content, &token.spelling));
    }
    result.max_id_ = std::max(result.max_id_, id);
    result.ids_[token.content] = id;
    if (token.special) result.special_.insert(token.content);
    result.by_id_[id] = result.tokens_.size();
    result.tokens_.push_back(std::move(token));
  }
  for (const bool special : {true, false}) {
    for (const AddedToken& token : result.tokens_) {
      if (token.special != special) continue;
      (token.normalized ? result.normalized_ : result.plain_).Add(token.spelling, &token);
    }
  }
  return result;
}

void AddedTokens::Split(const CharClasses& classes, std::string_view text, bool normalized,
                        std::vector<Segment>* segments) const {
  segments->clear();
  const Matcher& matcher = normalized ? normalized_ : plain_;
  size_t done = 0;  // what lies before is in `segments`
  for (size_t pos = 0; pos < text.size();) {
    size_t end = 0;
    const AddedToken* token = matcher.Match(text, pos, &end);
    if (token == nullptr) {
      ++pos;
      continue;
    }
    size_t begin = pos;
    pos = end;
    if (token->single_word && IsInsideWord(classes, text, begin, end)) continue;
    if (token->lstrip) {
      size_t before = 0;
      size_t left = begin;
      while (left > 0 && classes.IsSpace(CodePointBefore(text, left, &before))) left = before;
      begin = std::max(left, done);
    }
    if (token->rstrip) {
      for (size_t next = end; next < text.size() && classes.IsSpace(NextCodePoint(text, &next));) {
        end = next;
      }
    }
    if (done < begin) segments->push_back({done, begin, std::nullopt});
    segments->push_back({begin, end, token->id});
    done = end;
  }
  if (done != text.size()) segments->push_back({done, text.size(), std::nullopt});
}

std::optional<TokenId> AddedTokens::TokenToId(std::string_view token) const {
  const auto it = ids_.find(std::string(token));
  if (it == ids_.end()) return std::nullopt;
  return it->second;
}

const AddedToken* AddedTokens::Find(TokenId id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : &tokens_[it->second];
}

bool AddedTokens::IsSpecial(std::string_view spelling) const {
  return special_.contains(std::string(spelling));
}

}  // namespace skein
