#pragma once

#include <cstdint>

#include "base/paged_array.h"
#include "text/unicode/unicode_tables.h"

namespace skein {

// The classes of every code point in one byte each (1.1 MB, of which the four fifths without
// characters take no memory). Immutable.
class CharClasses {
 public:
  CharClasses();

  bool IsLetter(uint32_t c) const { return flags_[c] & kLetter; }
  bool IsNumber(uint32_t c) const { return flags_[c] & kNumber; }  // \p{N}
  bool IsSpace(uint32_t c) const { return flags_[c] & kSpace; }
  bool IsPunctuation(uint32_t c) const { return flags_[c] & kPunctuation; }
  bool IsNumeric(uint32_t c) const {
    return flags_[c] & kNumeric;
  }  // as the Digits pre-tokenizer counts
  bool IsWord(uint32_t c) const { return flags_[c] & kWord; }
  // Whether a character is neither space nor letter nor number.
  bool IsSymbol(uint32_t c) const { return !(flags_[c] & (kLetter | kNumber | kSpace)); }

 private:
  enum Flag : uint8_t {
    kLetter = 1,
    kNumber = 2,
    kSpace = 4,
    kPunctuation = 8,
    kNumeric = 16,
    kWord = 32,
  };
  void Set(std::span<const CodePointRange> ranges, Flag flag);

  PagedArray<uint8_t> flags_;  // [0x110000]
};

}  // namespace skein
