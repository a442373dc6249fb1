#include "text/jinja/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "text/jinja/unicode.h"

namespace skein::jinja {
namespace {

bool IsAsciiUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsAsciiLower(char c) { return c >= 'a' && c <= 'z'; }
char ToUpper(char c) { return IsAsciiLower(c) ? static_cast<char>(c - 'a' + 'A') : c; }
char ToLower(char c) { return IsAsciiUpper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

bool IsAsciiLetter(char32_t c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
constexpr char32_t kCapitalSigma = 0x3A3;
constexpr std::string_view kWordSeparators = "-({[<";

bool Strippable(char32_t code_point, const std::string* chars) {
  if (chars == nullptr) return IsSpace(code_point);
  std::string encoded;
  AppendUtf8(code_point, &encoded);
  return chars->find(encoded) != std::string::npos;
}

// The start of the code point that ends at `end`.
size_t PreviousOffset(std::string_view text, size_t end) {
  do {
    --end;
  } while (end > 0 && IsContinuationByte(text[end]));
  return end;
}

}  // namespace

size_t NumCodePoints(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !IsContinuationByte(c); }));
}

size_t OffsetOfCodePoint(std::string_view text, size_t index) {
  size_t pos = 0;
  for (size_t i = 0; i < index && pos < text.size(); ++i) NextCodePoint(text, &pos);
  return pos;
}

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool IsSpace(char32_t c) {
  if (c <= 0x20) return (c >= 9 && c <= 13) || c >= 28;
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string_view Strip(std::string_view text, const std::string* chars, bool left, bool right) {
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    size_t next = begin;
    if (!Strippable(NextCodePoint(text, &next), chars)) break;
    begin = next;
  }
  while (right && end > begin) {
    const size_t previous = PreviousOffset(text, end);
    size_t pos = previous;
    if (!Strippable(NextCodePoint(text, &pos), chars)) break;
    end = previous;
  }
  return text.substr(begin, end - begin);
}

size_t FindText(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  // memmem is linear in the worst case, std::string_view::find is not.
  const void* found =
      ::memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

std::string ReplaceText(std::string_view text, std::string_view from, std::string_view to,
                        Integer max_count, RenderState* state) {
  std::string out;
  if (!state->Charge(text.size())) return out;
  size_t pos = 0;
  for (Integer count = 0; max_count < 0 || count < max_count; ++count) {
    size_t next = pos;
    if (from.empty()) {  // empty text matches before every character and at the end
      if (count > 0) {
        if (pos >= text.size()) break;
        NextCodePoint(text, &next);
      }
    } else {
      next = FindText(text, from, pos);
      if (next == std::string_view::npos) break;
    }
    if (!state->Charge(to.size() + 1)) return out;
    out.append(text.substr(pos, next - pos)).append(to);
    pos = next + from.size();
  }
  return out.append(text.substr(pos));
}

std::vector<std::string_view> SplitText(std::string_view text, std::string_view separator,
                                        Integer max_splits, bool from_right) {
  std::string text_backwards, separator_backwards;
  std::string_view in = text, what = separator;
  if (from_right) {
    in = text_backwards.assign(text.rbegin(), text.rend());
    what = separator_backwards.assign(separator.rbegin(), separator.rend());
  }
  std::vector<size_t> starts;  // the positions of the separators
  for (size_t pos = 0; max_splits < 0 || static_cast<Integer>(starts.size()) < max_splits;
       pos = starts.back() + separator.size()) {
    const size_t next = FindText(in, what, pos);
    if (next == std::string_view::npos) break;
    starts.push_back(next);
  }
  if (from_right) {
    std::reverse(starts.begin(), starts.end());
    for (size_t& start : starts) start = text.size() - separator.size() - start;
  }
  std::vector<std::string_view> parts;
  size_t pos = 0;
  for (const size_t start : starts) {
    parts.push_back(text.substr(pos, start - pos));
    pos = start + separator.size();
  }
  parts.push_back(text.substr(pos));
  return parts;
}

std::vector<std::string_view> SplitSpace(std::string_view text, Integer max_splits) {
  std::vector<std::string_view> parts;
  text = Strip(text, nullptr, true, false);
  while (!text.empty()) {
    if (max_splits >= 0 && static_cast<Integer>(parts.size()) == max_splits) {
      parts.push_back(text);
      break;
    }
    size_t pos = 0, end = 0;
    while (pos < text.size() && !IsSpace(NextCodePoint(text, &pos))) end = pos;
    parts.push_back(text.substr(0, end));
    text = Strip(text.substr(end), nullptr, true, false);
  }
  return parts;
}

std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t start = 0;
  for (size_t pos = 0; pos < text.size();) {
    const size_t end = pos;
    const char32_t c = NextCodePoint(text, &pos);
    const bool is_break =
        (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!is_break) continue;
    if (c == '\r' && pos < text.size() && text[pos] == '\n') ++pos;
    lines.push_back(text.substr(start, (keep_ends ? pos : end) - start));
    start = pos;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::string ChangeCase(std::string_view text, Case to, RenderState* state) {
  std::string out;
  if (!state->Charge(text.size())) return out;
  bool at_start = true;
  for (size_t pos = 0; pos < text.size();) {
    const char32_t c = NextCodePoint(text, &pos);
    const bool raises = to == Case::kUpper || (to != Case::kLower && at_start);
    if (c < 0x80) {
      const char ascii = static_cast<char>(c);
      out.push_back(raises ? ToUpper(ascii) : ToLower(ascii));
    } else if (raises) {
      // Python's capitalize and title use the title-case form, which may differ from the upper-case
      // form.
      if (to == Case::kCapitalize)
        state->FailUnsupported("'capitalize' of a character outside ASCII");
      AppendUpper(c, &out);
    } else {
      // The lower-case form of sigma depends on its position in a word.
      if (c == kCapitalSigma) state->FailUnsupported("a capital sigma in lower case");
      AppendLower(c, &out);
    }
    if (to == Case::kCapitalize) {
      at_start = false;
    } else if (to == Case::kTitle) {  // a word is a run of cased letters
      if (c >= 0x80) state->FailUnsupported("'title' of text outside ASCII");
      at_start = !IsAsciiLetter(c);
    } else if (to == Case::kJinjaTitle) {  // a word begins after one of these characters
      at_start = IsSpace(c) ||
                 (c < 0x80 && kWordSeparators.find(static_cast<char>(c)) != std::string_view::npos);
    }
  }
  return out;
}

std::string IntegerText(Integer value) {
  if (value == 0) return "0";
  std::string digits;
  const bool negative = value < 0;
  for (; value != 0; value /= 10) {
    const int digit = static_cast<int>(value % 10);
    digits.push_back(static_cast<char>('0' + (digit < 0 ? -digit : digit)));
  }
  if (negative) digits.push_back('-');
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<size_t>(end.ptr - buffer));
  const size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), end.ptr, exponent);
  // Python writes an exponent only for very small and very large numbers.
  if (exponent < -4 || exponent >= 16) return std::string(text);
  const bool negative = text[0] == '-';
  std::string digits(1, text[negative ? 1 : 0]);
  if (e > digits.size() + (negative ? 1 : 0))
    digits += text.substr(negative ? 3 : 2, e - (negative ? 3 : 2));
  std::string out = negative ? "-" : "";
  if (exponent < 0) {
    out += "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
    return out;
  }
  const auto point = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= point) return out + digits + std::string(point - digits.size(), '0') + ".0";
  return out + digits.substr(0, point) + "." + digits.substr(point);
}

std::string QuotedText(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  const auto append_escaped = [&out](char letter, char32_t c, int num_digits) {
    constexpr char kHex[] = "0123456789abcdef";
    out.push_back('\\');
    out.push_back(letter);
    for (int shift = 4 * (num_digits - 1); shift >= 0; shift -= 4) {
      out.push_back(kHex[(c >> shift) & 15]);
    }
  };
  for (size_t pos = 0; pos < text.size();) {
    const char32_t c = NextCodePoint(text, &pos);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(c));
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || c == 0x7F || (c >= 0x80 && !IsPrintable(c))) {
      c < 0x100     ? append_escaped('x', c, 2)
      : c < 0x10000 ? append_escaped('u', c, 4)
                    : append_escaped('U', c, 8);
    } else {
      AppendUtf8(c, &out);
    }
  }
  out.push_back(quote);
  return out;
}

std::optional<Integer> ParseInteger(std::string_view text) {
  text = Strip(text, nullptr, true, true);
  bool negative = false;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  Integer value = 0;
  bool after_digit = false;  // a single underscore may follow
  for (const char c : text) {
    if (c == '_' && after_digit) {
      after_digit = false;
      continue;
    }
    if (c < '0' || c > '9') return std::nullopt;
    if (__builtin_mul_overflow(value, Integer{10}, &value) ||
        __builtin_add_overflow(value, static_cast<Integer>(c - '0'), &value)) {
      return std::nullopt;
    }
    after_digit = true;
  }
  if (!after_digit) return std::nullopt;
  return negative ? -value : value;
}

std::optional<double> ParseFloat(std::string_view text) {
  text = Strip(text, nullptr, true, true);
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto is_digit = [&](size_t k) {
      return k < text.size() && text[k] >= '0' && text[k] <= '9';
    };
    if (text[i] == '_') {
      if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) return std::nullopt;
      continue;
    }
    plain.push_back(ToLower(text[i]));
  }
  const bool negative = !plain.empty() && plain[0] == '-';
  if (!plain.empty() && (plain[0] == '+' || plain[0] == '-')) plain.erase(0, 1);
  if (plain.empty() || plain[0] == '-' || plain[0] == '+') return std::nullopt;
  double value = 0;
  if (plain == "inf" || plain == "infinity") {
    value = HUGE_VAL;
  } else if (plain == "nan") {
    value = std::nan("");
  } else {
    if (plain[0] != '.' && !(plain[0] >= '0' && plain[0] <= '9')) return std::nullopt;
    const auto end = std::from_chars(plain.data(), plain.data() + plain.size(), value);
    if (end.ptr != plain.data() + plain.size()) return std::nullopt;
    if (end.ec == std::errc::result_out_of_range)
      value = std::strtod(plain.c_str(), nullptr);
    else if (end.ec != std::errc())
      return std::nullopt;
  }
  return negative ? -value : value;
}

}  // namespace skein::jinja
