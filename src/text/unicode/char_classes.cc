#include "text/unicode/char_classes.h"

namespace skein {
namespace {

// Positions in the category list of unicode_tables.h.
constexpr uint32_t kFirstNotLetter = 5;  // the letters are Lu Ll Lt Lm Lo
constexpr uint32_t kFirstNumber = 8;     // the numbers are Nd Nl No
constexpr uint32_t kFirstNotNumber = 11;

}  // namespace

CharClasses::CharClasses() : flags_(0x110000) {
  for (size_t i = 0; i < kCategoryRuns.size(); ++i) {
    const uint32_t category = kCategoryRuns[i] & 0xFF;
    const uint32_t end = i + 1 < kCategoryRuns.size() ? kCategoryRuns[i + 1] >> 8 : 0x110000;
    const CodePointRange run{kCategoryRuns[i] >> 8, end - 1};
    if (category < kFirstNotLetter) Set({&run, 1}, kLetter);
    if (category >= kFirstNumber && category < kFirstNotNumber) Set({&run, 1}, kNumber);
  }
  Set(kSpaceRanges, kSpace);
  Set(kPunctuationRanges, kPunctuation);
  Set(kNumericRanges, kNumeric);
  Set(kWordRanges, kWord);
}

void CharClasses::Set(std::span<const CodePointRange> ranges, Flag flag) {
  for (const CodePointRange& range : ranges) {
    for (uint32_t c = range.first; c <= range.last; ++c) flags_[c] |= flag;
  }
}

}  // namespace skein
