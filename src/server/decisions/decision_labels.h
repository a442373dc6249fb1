#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "skein/request.h"
#include "text/tokenizer.h"

namespace skein {

// The labels of one question: the text before each option, and its token.
struct DecisionLabels {
  std::vector<std::string> texts;
  std::vector<TokenId> tokens;  // distinct, [texts.size()]
};

// Finds labels that are single tokens at the end of a prompt. One finder serves one prompt ending;
// it is cheap to make.
class LabelFinder {
 public:
  // `ending`: the end of the prompt, long enough that the tokens of a text behind it do not depend
  // on what stands before it. If `space_first` is set, labels are tried with a space before them
  // first, then without; otherwise without first. `tokenizer` must outlive the finder.
  static Result<LabelFinder> Make(const Tokenizer* tokenizer, std::string ending, bool space_first);

  // Uses all of `texts` as labels. kInvalidArgument names the first text that is not a single token
  // there, or two texts with the same token.
  Result<DecisionLabels> Exactly(const std::vector<std::string>& texts) const;
  // The spellings of yes and of no (`yes_no` [2]) that are single tokens, as many as there are.
  // kInvalidArgument if yes or no has no such spelling.
  Result<std::vector<std::vector<TokenId>>> SpellingsOf(
      const std::array<std::vector<std::string>, 2>& yes_no) const;
  // The labels A to Z. If `count` exceeds 26, two-letter codes that are single tokens follow.
  Result<DecisionLabels> Letters(size_t count) const;

  // The tokens that `text` adds behind the ending, with a space before it or without. Returns
  // nullopt if the text changes the ending's tokens or adds none.
  std::optional<std::vector<TokenId>> PathOf(std::string_view text, bool space) const;
  bool space_first() const { return space_first_; }

 private:
  LabelFinder(const Tokenizer* tokenizer, std::string ending, bool space_first)
      : tokenizer_(tokenizer), ending_(std::move(ending)), space_first_(space_first) {}

  // The token that `text` adds behind the ending; nullopt if it adds none or several.
  std::optional<TokenId> TokenOf(std::string_view text) const;
  // The tokens of the first variant (with a space before each text or without) that works for all
  // `texts`. On failure *failed is the first text that failed in the variant that was tried first.
  std::optional<std::vector<TokenId>> TokensOf(const std::vector<std::string>& texts,
                                               std::string* failed) const;

  const Tokenizer* tokenizer_;
  std::string ending_;
  bool space_first_;
  std::vector<TokenId> ending_ids_;
};

}  // namespace skein
