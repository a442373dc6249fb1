#include "text/unicode/graphemes.h"

#include "text/unicode/utf8.h"

namespace skein {
namespace {

constexpr uint8_t kClassMask = 0x1F;
constexpr uint32_t kFirstSyllable = 0xAC00, kLastSyllable = 0xD7A3, kTrailingCount = 28;
constexpr uint32_t kFirstRegional = 0x1F1E6, kLastRegional = 0x1F1FF;

}  // namespace

Graphemes::Graphemes() : classes_(0x110000, 0) {
  for (const GraphemeClassRange& range : kGraphemeClassRanges) {
    for (uint32_t c = range.first; c <= range.last; ++c) {
      classes_[c] = static_cast<uint8_t>(range.grapheme_class);
    }
  }
  const auto set = [this](std::span<const CodePointRange> ranges, Conjunct flag) {
    for (const CodePointRange& range : ranges) {
      for (uint32_t c = range.first; c <= range.last; ++c) classes_[c] |= flag;
    }
  };
  set(kConjunctConsonantRanges, kConsonant);
  set(kConjunctLinkerRanges, kLinker);
  set(kConjunctExtendRanges, kConjunctExtend);
}

GraphemeClass Graphemes::ClassOf(uint32_t c) const {
  if (c >= kFirstSyllable && c <= kLastSyllable) {
    return (c - kFirstSyllable) % kTrailingCount == 0 ? GraphemeClass::kHangulLv
                                                      : GraphemeClass::kHangulLvt;
  }
  if (c >= kFirstRegional && c <= kLastRegional) return GraphemeClass::kRegionalIndicator;
  return static_cast<GraphemeClass>(classes_[c] & kClassMask);
}

// Whether two neighbours join by the rules that look at two characters only: GB3 to GB9b.
bool Graphemes::Joins(GraphemeClass left, GraphemeClass right) {
  using enum GraphemeClass;
  const auto is_control = [](GraphemeClass c) { return c == kControl || c == kCr || c == kLf; };
  if (left == kCr && right == kLf) return true;
  if (is_control(left) || is_control(right)) return false;
  if (right == kExtend || right == kZwj || right == kSpacingMark || left == kPrepend) return true;
  switch (left) {
    case kHangulL:
      return right == kHangulL || right == kHangulV || right == kHangulLv || right == kHangulLvt;
    case kHangulLv:
    case kHangulV:
      return right == kHangulV || right == kHangulT;
    case kHangulLvt:
    case kHangulT:
      return right == kHangulT;
    default:
      return false;
  }
}

size_t Graphemes::ClusterEnd(std::string_view text, size_t begin) const {
  size_t pos = begin;
  uint32_t c = NextCodePoint(text, &pos);
  GraphemeClass left = ClassOf(c);
  // The state of the rules for pictographs with a joiner (GB11) and for conjuncts (GB9c).
  bool after_pictograph = left == GraphemeClass::kPictograph, after_joiner = false;
  bool after_consonant = classes_[c] & kConsonant, after_linker = false;
  int num_regional = left == GraphemeClass::kRegionalIndicator;
  while (pos < text.size()) {
    size_t next = pos;
    c = NextCodePoint(text, &next);
    const GraphemeClass right = ClassOf(c);
    const uint8_t flags = classes_[c];
    const bool joins = Joins(left, right) ||
                       (after_joiner && right == GraphemeClass::kPictograph) ||
                       (after_linker && (flags & kConsonant)) ||
                       (right == GraphemeClass::kRegionalIndicator && num_regional % 2 == 1);
    if (!joins) break;
    after_joiner = after_pictograph && right == GraphemeClass::kZwj;
    after_pictograph = right == GraphemeClass::kPictograph ||
                       (after_pictograph && right == GraphemeClass::kExtend);
    after_linker =
        after_consonant && ((flags & kLinker) || (after_linker && (flags & kConjunctExtend)));
    after_consonant = (flags & kConsonant) || (after_consonant && (flags & kConjunctExtend));
    num_regional = right == GraphemeClass::kRegionalIndicator ? num_regional + 1 : 0;
    left = right;
    pos = next;
  }
  return pos;
}

}  // namespace skein
