#include "server/decisions/decision_labels.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace skein {
namespace {

constexpr size_t kLetters = 26;

std::string Letter(size_t i) { return std::string(1, static_cast<char>('A' + i)); }

Status SameToken(const std::string& a, const std::string& b) {
  return Status(StatusCode::kInvalidArgument,
                fmt::format("needs the labels \"{}\" and \"{}\", which are the same token of this "
                            "model: use another model or another question type",
                            a, b));
}

}  // namespace

Result<LabelFinder> LabelFinder::Make(const Tokenizer* tokenizer, std::string ending,
                                      bool space_first) {
  LabelFinder finder(tokenizer, std::move(ending), space_first);
  SKEIN_RETURN_IF_ERROR(tokenizer->Encode(finder.ending_, false, &finder.ending_ids_));
  return finder;
}

std::optional<std::vector<TokenId>> LabelFinder::PathOf(std::string_view text, bool space) const {
  std::vector<TokenId> ids;
  const std::string whole = ending_ + (space ? " " : "") + std::string(text);
  if (!tokenizer_->Encode(whole, false, &ids).ok()) return std::nullopt;
  if (ids.size() <= ending_ids_.size() ||
      !std::equal(ending_ids_.begin(), ending_ids_.end(), ids.begin())) {
    return std::nullopt;
  }
  ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(ending_ids_.size()));
  return ids;
}

std::optional<TokenId> LabelFinder::TokenOf(std::string_view text) const {
  const auto path = PathOf(text, /*space=*/false);
  return path && path->size() == 1 ? std::optional(path->front()) : std::nullopt;
}

std::optional<std::vector<TokenId>> LabelFinder::TokensOf(const std::vector<std::string>& texts,
                                                          std::string* failed) const {
  for (const bool space : {space_first_, !space_first_}) {
    std::vector<TokenId> tokens;
    for (const std::string& text : texts) {
      const auto token = TokenOf(space ? " " + text : text);
      if (!token) {
        if (failed->empty()) *failed = text;
        break;
      }
      tokens.push_back(*token);
    }
    if (tokens.size() == texts.size()) return tokens;
  }
  return std::nullopt;
}

Result<DecisionLabels> LabelFinder::Exactly(const std::vector<std::string>& texts) const {
  std::string failed;
  auto tokens = TokensOf(texts, &failed);
  if (!tokens) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("needs the label \"{}\", which is not a single token of this model "
                              "where the answer begins: use another model or another question type",
                              failed));
  }
  for (size_t i = 0; i < tokens->size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if ((*tokens)[i] != (*tokens)[j]) continue;
      return SameToken(texts[j], texts[i]);
    }
  }
  return DecisionLabels{texts, *std::move(tokens)};
}

Result<std::vector<std::vector<TokenId>>> LabelFinder::SpellingsOf(
    const std::array<std::vector<std::string>, 2>& yes_no) const {
  std::vector<std::vector<TokenId>> found(2);
  for (size_t i = 0; i < 2; ++i) {
    for (const std::string& spelling : yes_no[i]) {
      for (const bool space : {false, true}) {
        const auto token = TokenOf((space ? " " : "") + spelling);
        if (!token || std::ranges::count(found[0], *token) + std::ranges::count(found[1], *token)) {
          continue;
        }
        found[i].push_back(*token);
      }
    }
    if (!found[i].empty()) continue;
    const auto bare = TokenOf(yes_no[i].front());
    if (bare && std::ranges::count(found[0], *bare) > 0)
      return SameToken(yes_no[0][0], yes_no[1][0]);
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("needs the label \"{}\", which is not a single token of this model "
                              "where the answer begins: use another model or another question type",
                              yes_no[i].front()));
  }
  return found;
}

Result<DecisionLabels> LabelFinder::Letters(size_t count) const {
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(count, kLetters); ++i) texts.push_back(Letter(i));
  SKEIN_ASSIGN_OR_RETURN(DecisionLabels labels, Exactly(texts));
  // Codes are tried in the variant in which the letters were found: without a space before them or
  // with one.
  const bool space = TokenOf(labels.texts[0]) != labels.tokens[0];
  for (size_t i = 0; i < kLetters * kLetters && labels.texts.size() < count; ++i) {
    const std::string code = Letter(i / kLetters) + Letter(i % kLetters);
    const auto token = TokenOf(space ? " " + code : code);
    const auto& known = labels.tokens;
    if (!token || std::find(known.begin(), known.end(), *token) != known.end()) continue;
    labels.texts.push_back(code);
    labels.tokens.push_back(*token);
  }
  if (labels.texts.size() < count) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("has {} options, but this model has single tokens for {} labels only: "
                    "ask with fewer options",
                    count, labels.texts.size()));
  }
  return labels;
}

}  // namespace skein
