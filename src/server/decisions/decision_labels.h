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

// The labels of one question: what stands before its options and the token of each.
struct DecisionLabels {
  std::vector<std::string> texts;
  std::vector<TokenId> tokens;  // distinct, [texts.size()]
};

// Finds labels that are one token each at the place where a prompt ends. Made anew for each prompt
// ending; cheap.
class LabelFinder {
 public:
  // `ending`: the end of the prompt, long enough that the tokens of what follows do not depend on
  // what was before it. `space_first`: labels are tried with a space before them, then without;
  // otherwise the other way round. `tokenizer` must outlive the finder.
  static Result<LabelFinder> Make(const Tokenizer* tokenizer, std::string ending, bool space_first);

  // All of `texts`. kInvalidArgument names the first that is no single token there, or two that are
  // the same one.
  Result<DecisionLabels> Exactly(const std::vector<std::string>& texts) const;
  // Single tokens that are spellings of yes and of no (`yes_no` [2]), as many as there are.
  // kInvalidArgument if one of the two has none.
  Result<std::vector<std::vector<TokenId>>> SpellingsOf(
      const std::array<std::vector<std::string>, 2>& yes_no) const;
  // A..Z; beyond those as many two-letter codes as are needed, of those that are single tokens.
  Result<DecisionLabels> Letters(size_t count) const;

  // The tokens that `text` adds behind the ending, with a space before it or without; nullopt if it
  // changes the ending's tokens or adds none.
  std::optional<std::vector<TokenId>> PathOf(std::string_view text, bool space) const;
  bool space_first() const { return space_first_; }

 private:
  LabelFinder(const Tokenizer* tokenizer, std::string ending, bool space_first)
      : tokenizer_(tokenizer), ending_(std::move(ending)), space_first_(space_first) {}

  // The token that `text` adds after the ending; nullopt if it is not exactly one.
  std::optional<TokenId> TokenOf(std::string_view text) const;
  // The tokens of the first variant (bare or with a space) that works for all `texts`. On failure
  // *failed is the first text that failed in the variant tried first.
  std::optional<std::vector<TokenId>> TokensOf(const std::vector<std::string>& texts,
                                               std::string* failed) const;

  const Tokenizer* tokenizer_;
  std::string ending_;
  bool space_first_;
  std::vector<TokenId> ending_ids_;
};

}  // namespace skein
