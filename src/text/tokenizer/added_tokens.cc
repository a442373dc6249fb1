#include "text/tokenizer/added_tokens.h"

#include <algorithm>

#include "base/check.h"
#include "text/unicode/utf8.h"

namespace skein {
namespace {

// The character that ends at `end`. REQUIRES: end > 0.
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

uint32_t AddedTokens::Matcher::FindChild(uint32_t node, char byte) const {
  uint32_t child = nodes_[node].child;
  while (child != 0 && nodes_[child].byte != byte) child = nodes_[child].sibling;
  return child;
}

void AddedTokens::Matcher::Add(std::string_view text, const AddedToken* token) {
  if (text.empty()) return;
  bool& is_start = starts_[static_cast<uint8_t>(text[0])];
  if (!is_start) {
    is_start = true;
    ++num_starts_;
    start_ = text[0];
  }
  if (text.size() == 1) {
    seconds_.fill(true);
  } else {
    seconds_[static_cast<uint8_t>(text[1])] = true;
  }
  uint32_t node = 0;
  for (const char c : text) {
    uint32_t child = FindChild(node, c);
    if (child == 0) {
      child = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({c, 0, nodes_[node].child, nullptr});
      nodes_[node].child = child;
    }
    node = child;
  }
  // The first of equal patterns wins.
  if (nodes_[node].token == nullptr) nodes_[node].token = token;
}

size_t AddedTokens::Matcher::FindStart(std::string_view text, size_t pos) const {
  if (num_starts_ == 0) return text.size();
  if (num_starts_ == 1) return std::min(text.find(start_, pos), text.size());
  // A pattern of one byte may stand at the end of the text, where there is no next byte to read.
  for (; pos + 1 < text.size(); ++pos) {
    if (starts_[static_cast<uint8_t>(text[pos])] && seconds_[static_cast<uint8_t>(text[pos + 1])]) {
      return pos;
    }
  }
  return pos;
}

const AddedToken* AddedTokens::Matcher::Match(std::string_view text, size_t pos,
                                              size_t* end) const {
  const AddedToken* best = nullptr;
  for (uint32_t node = 0; pos < text.size();) {
    node = FindChild(node, text[pos]);
    if (node == 0) break;
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
    // A token that the model has keeps its id. Other tokens are numbered from the end of the
    // vocabulary.
    const TokenId id =
        model_token_to_id(token.content).value_or(std::max(result.max_id_ + 1, first_free));
    if (token.id != id) {
      return Status(StatusCode::kInvalidArgument, "the added token '" + token.content +
                                                      "' has the id " + std::to_string(token.id) +
                                                      ", but its position in the list gives it " +
                                                      std::to_string(id));
    }
    token.spelling = token.content;
    if (token.normalized) {
      SKEIN_RETURN_IF_ERROR(normalizer.Normalize(token.content, &token.spelling));
    }
    result.max_id_ = std::max(result.max_id_, id);
    result.ids_[token.content] = id;
    if (token.special) result.special_.insert(token.content);
    result.by_id_.resize(static_cast<size_t>(result.max_id_) + 1, -1);
    result.by_id_[id] = static_cast<int32_t>(result.tokens_.size());
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

bool AddedTokens::FindNext(const CharClasses& classes, std::string_view text, bool normalized,
                           const SpecialAsText& as_text, size_t done, size_t* pos,
                           Segment* found) const {
  const Matcher& matcher = normalized ? normalized_ : plain_;
  while ((*pos = matcher.FindStart(text, *pos)) < text.size()) {
    size_t begin = *pos, end = 0;
    const AddedToken* token = matcher.Match(text, begin, &end);
    const auto is_text = [&] {
      return token->special && (as_text.all || std::ranges::binary_search(as_text.at, begin));
    };
    if (token == nullptr || is_text()) {
      ++*pos;
      continue;
    }
    *pos = end;
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
    *found = {begin, end, token->id};
    return true;
  }
  return false;
}

std::vector<size_t> AddedTokens::FindSpecial(std::string_view text) const {
  std::vector<size_t> positions;
  for (const Matcher* matcher : {&plain_, &normalized_}) {
    for (size_t pos = 0; (pos = matcher->FindStart(text, pos)) < text.size(); ++pos) {
      size_t end = 0;
      const AddedToken* token = matcher->Match(text, pos, &end);
      if (token != nullptr && token->special) positions.push_back(pos);
    }
  }
  std::ranges::sort(positions);
  positions.erase(std::ranges::unique(positions).begin(), positions.end());
  return positions;
}

bool AddedTokens::TakesSpace() const {
  return std::ranges::any_of(tokens_, [](const AddedToken& t) { return t.lstrip || t.rstrip; });
}

void AddedTokens::Split(const CharClasses& classes, std::string_view text, bool normalized,
                        const SpecialAsText& as_text, std::vector<Segment>* segments) const {
  segments->clear();
  const Status status = ForEachSegment(classes, text, normalized, as_text,
                                       [segments](const Segment& segment) -> Status {
                                         segments->push_back(segment);
                                         return Status::Ok();
                                       });
  SKEIN_CHECK(status.ok());
}

SpecialAsText InsideOf(const AddedTokens::Segment& segment, const SpecialAsText& as_text) {
  const auto first = std::ranges::lower_bound(as_text.at, segment.begin);
  return {.all = as_text.all || (first != as_text.at.end() && *first < segment.end), .at = {}};
}

std::optional<TokenId> AddedTokens::TokenToId(std::string_view token) const {
  const auto it = ids_.find(std::string(token));
  if (it == ids_.end()) return std::nullopt;
  return it->second;
}

const AddedToken* AddedTokens::Find(TokenId id) const {
  if (id < 0 || id > max_id_ || by_id_[id] < 0) return nullptr;
  return &tokens_[by_id_[id]];
}

bool AddedTokens::IsSpecial(std::string_view spelling) const {
  return special_.contains(std::string(spelling));
}

}  // namespace skein
