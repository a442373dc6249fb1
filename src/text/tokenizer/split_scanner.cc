#include "text/tokenizer/split_scanner.h"

#include "text/unicode/utf8.h"

namespace skein {
namespace {

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr uint32_t kLongS = 0x17F;

// The end of the longest run of characters from `pos` for which `is` returns true.
template <typename Is>
size_t SkipWhile(std::string_view text, size_t pos, Is is) {
  while (pos < text.size()) {
    size_t next = pos;
    if (!is(NextCodePoint(text, &next))) break;
    pos = next;
  }
  return pos;
}

size_t LettersEnd(const CharClasses& classes, std::string_view text, size_t pos) {
  for (size_t begin = pos; begin + kAsciiBlock <= text.size(); begin = pos) {
    pos += std::countr_one(AsciiLetterMask(text.data() + pos));
    if (pos < begin + kAsciiBlock) break;
  }
  return SkipWhile(text, pos, [&](uint32_t x) { return classes.IsLetter(x); });
}

// The end of the contraction that starts with the apostrophe at `begin`; `begin` if there is none.
size_t ContractionEnd(std::string_view text, size_t begin, bool caseless) {
  if (text[begin] != '\'' || begin + 1 == text.size()) return begin;
  size_t pos = begin + 1;
  const auto fold = [&](uint32_t c) -> uint32_t {
    if (!caseless) return c;
    if (c == kLongS) return 's';
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
  };
  const uint32_t first = fold(NextCodePoint(text, &pos));
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return pos;
  if (pos == text.size()) return begin;
  const uint32_t second = fold(NextCodePoint(text, &pos));
  if ((first == 'r' || first == 'v') && second == 'e') return pos;
  return first == 'l' && second == 'l' ? pos : begin;
}

// Matches \s+(?!\S)|\s+ in the run of spaces [begin, end). At the end of the text, the match is the
// whole run. Otherwise the last character goes to the next word, unless it is the only one.
size_t SpacesEnd(std::string_view text, size_t begin, size_t end) {
  if (end == text.size()) return end;
  size_t last = end - 1;
  while (IsContinuationByte(text[last])) --last;
  return last > begin ? last : end;
}

}  // namespace

constexpr SplitScanner::LeadTable SplitScanner::kGpt2Lead = [] {
  LeadTable table{};
  table[' '] = 1;
  return table;
}();

// [^\r\n\p{L}\p{N}], except for the apostrophe, since a contraction takes precedence.
constexpr SplitScanner::LeadTable SplitScanner::kCaselessLead = [] {
  LeadTable table{};
  for (int c = 0; c < 0x80; ++c) {
    const bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    const bool digit = c >= '0' && c <= '9';
    table[c] = !letter && !digit && c != '\r' && c != '\n' && c != '\'';
  }
  return table;
}();

std::optional<SplitScanner> SplitScanner::ForPattern(std::string_view pattern) {
  if (pattern == kGpt2) return SplitScanner(true, 0);
  if (pattern == kQwen2) return SplitScanner(false, 1);
  if (pattern == kLlama3) return SplitScanner(false, 3);
  return std::nullopt;
}

size_t SplitScanner::Gpt2End(const CharClasses& classes, std::string_view text,
                             size_t begin) const {
  if (const size_t end = ContractionEnd(text, begin, false); end != begin) return end;
  // Matches an optional space, then a run of characters of one kind.
  size_t start = begin;
  if (text[begin] == ' ' && begin + 1 < text.size()) {
    size_t next = begin + 1;
    if (!classes.IsSpace(NextCodePoint(text, &next))) start = begin + 1;
  }
  size_t pos = start;
  const uint32_t c = NextCodePoint(text, &pos);
  if (classes.IsLetter(c)) {
    return LettersEnd(classes, text, pos);
  }
  if (classes.IsNumber(c)) {
    return SkipWhile(text, pos, [&](uint32_t x) { return classes.IsNumber(x); });
  }
  if (classes.IsSymbol(c)) {
    return SkipWhile(text, pos, [&](uint32_t x) { return classes.IsSymbol(x); });
  }
  pos = SkipWhile(text, pos, [&](uint32_t x) { return classes.IsSpace(x); });
  return SpacesEnd(text, begin, pos);
}

size_t SplitScanner::CaselessEnd(const CharClasses& classes, std::string_view text,
                                 size_t begin) const {
  const auto is_newline = [](uint32_t x) { return x == '\r' || x == '\n'; };
  if (const size_t end = ContractionEnd(text, begin, true); end != begin) return end;

  size_t pos = begin;
  const uint32_t c = NextCodePoint(text, &pos);
  // [^\r\n\p{L}\p{N}]?\p{L}+
  if (classes.IsLetter(c)) return LettersEnd(classes, text, pos);
  if (!is_newline(c) && !classes.IsNumber(c)) {
    if (const size_t end = LettersEnd(classes, text, pos); end != pos) return end;
  }
  // \p{N}{1,max_digits_}
  if (classes.IsNumber(c)) {
    int left = max_digits_ - 1;
    return SkipWhile(text, pos, [&](uint32_t x) { return classes.IsNumber(x) && left-- > 0; });
  }
  //  ?[^\s\p{L}\p{N}]+[\r\n]*
  const auto is_symbol = [&](uint32_t x) { return classes.IsSymbol(x); };
  const size_t symbols = text[begin] == ' ' ? begin + 1 : begin;
  if (const size_t end = SkipWhile(text, symbols, is_symbol); end != symbols) {
    return SkipWhile(text, end, is_newline);
  }
  // \s*[\r\n]+ matches up to the last line break in the run of spaces.
  const size_t end = SkipWhile(text, begin, [&](uint32_t x) { return classes.IsSpace(x); });
  for (size_t i = end; i > begin; --i) {
    if (is_newline(static_cast<unsigned char>(text[i - 1]))) return i;
  }
  return SpacesEnd(text, begin, end);
}

}  // namespace skein
