#pragma once

#include <optional>
#include <string_view>

#include "text/char_classes.h"

namespace skein {

// Hand-written scanners for the expressions that most models split words with. Each of them covers
// every text: the next match always starts where the last one ended.
class SplitScanner {
 public:
  // The scanner for exactly this expression, if there is one.
  static std::optional<SplitScanner> ForPattern(std::string_view pattern);
  // The expression of ByteLevel's use_regex (GPT-2).
  static SplitScanner Gpt2() { return SplitScanner(true, 0); }

  // The end of the match that starts at `begin`. REQUIRES: valid UTF-8, begin < text.size().
  size_t MatchEnd(const CharClasses& classes, std::string_view text, size_t begin) const;

 private:
  SplitScanner(bool gpt2, int max_digits) : gpt2_(gpt2), max_digits_(max_digits) {}
  size_t Gpt2End(const CharClasses& classes, std::string_view text, size_t begin) const;
  size_t CaselessEnd(const CharClasses& classes, std::string_view text, size_t begin) const;

  bool gpt2_;
  int max_digits_;  // of \p{N}{1,max_digits_}
};

}  // namespace skein
