#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "text/unicode/ascii_scan.h"
#include "text/unicode/char_classes.h"

namespace skein {

// Hand-written scanners for the regular expressions with which most models split words. The matches
// of each cover the whole text: the next match starts at the end of the previous one.
class SplitScanner {
 public:
  // The scanner for exactly this expression; nullopt if there is none.
  static std::optional<SplitScanner> ForPattern(std::string_view pattern);
  // The expression of ByteLevel's use_regex (GPT-2).
  static SplitScanner Gpt2() { return SplitScanner(true, 0); }

  // The end of the match that starts at `begin`. REQUIRES: valid UTF-8, begin < text.size().
  size_t MatchEnd(const CharClasses& classes, std::string_view text, size_t begin) const {
    // A fast path for most words: up to 15 ASCII letters, with or without one leading character
    // that belongs to the word.
    if (begin + 1 + kAsciiBlock <= text.size()) {
      const size_t start = begin + lead_[static_cast<unsigned char>(text[begin])];
      const uint32_t others = ~AsciiLetterMask(text.data() + start);  // bit 16 is always set
      const size_t end = start + std::countr_zero(others);
      if (end != start && end - start < kAsciiBlock &&
          static_cast<unsigned char>(text[end]) < 0x80) {
        return end;
      }
    }
    return gpt2_ ? Gpt2End(classes, text, begin) : CaselessEnd(classes, text, begin);
  }

 private:
  // [byte]: 1 if the byte belongs to the word of an ASCII letter after it and no other rule takes
  // precedence.
  using LeadTable = std::array<uint8_t, 256>;
  static const LeadTable kGpt2Lead, kCaselessLead;

  SplitScanner(bool gpt2, int max_digits)
      : gpt2_(gpt2), max_digits_(max_digits), lead_((gpt2 ? kGpt2Lead : kCaselessLead).data()) {}
  size_t Gpt2End(const CharClasses& classes, std::string_view text, size_t begin) const;
  size_t CaselessEnd(const CharClasses& classes, std::string_view text, size_t begin) const;

  bool gpt2_;
  int max_digits_;  // the bound in \p{N}{1,max_digits_}
  const uint8_t* lead_;
};

}  // namespace skein
