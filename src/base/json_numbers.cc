#include "base/json_numbers.h"

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <limits>

namespace skein {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsNumberByte(char c) {
  return IsDigit(c) || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

size_t SkipDigits(std::string_view text, size_t i) {
  while (i < text.size() && IsDigit(text[i])) ++i;
  return i;
}

// Whether `token` is a number by the grammar of RFC 8259, section 6.
bool IsJsonNumber(std::string_view token) {
  const auto at = [&](size_t i) { return i < token.size() ? token[i] : '\0'; };
  size_t i = at(0) == '-' ? 1 : 0;
  if (!IsDigit(at(i))) return false;
  i = at(i) == '0' ? i + 1 : SkipDigits(token, i);
  if (at(i) == '.') {
    if (!IsDigit(at(i + 1))) return false;
    i = SkipDigits(token, i + 1);
  }
  if (at(i) == 'e' || at(i) == 'E') {
    ++i;
    if (at(i) == '+' || at(i) == '-') ++i;
    if (!IsDigit(at(i))) return false;
    i = SkipDigits(token, i);
  }
  return i == token.size();
}

template <typename Integer>
bool Fits(std::string_view token) {
  Integer value = 0;
  return std::from_chars(token.data(), token.data() + token.size(), value).ec == std::errc();
}

void AppendNumber(std::string_view token, std::string* out) {
  const bool is_integer = token.find_first_of(".eE") == std::string_view::npos;
  const bool is_readable = is_integer && (Fits<int64_t>(token) || Fits<uint64_t>(token));
  if (is_readable || !IsJsonNumber(token)) {
    out->append(token);
    return;
  }
  constexpr double kMax = std::numeric_limits<double>::max();
  double value = std::strtod(std::string(token).c_str(), nullptr);
  const bool overflows = value > kMax || value < -kMax;
  if (!is_integer && !overflows) {
    out->append(token);
    return;
  }
  if (overflows) value = value > 0 ? kMax : -kMax;
  char text[32];
  const auto end =
      std::to_chars(text, text + sizeof(text), value, std::chars_format::scientific).ptr;
  out->append(text, end);
}

// The index behind a string that begins at `begin`.
size_t SkipString(std::string_view json, size_t begin) {
  for (size_t i = begin + 1; i < json.size(); ++i) {
    if (json[i] == '\\') {
      ++i;
    } else if (json[i] == '"') {
      return i + 1;
    }
  }
  return json.size();
}

}  // namespace

std::string WithReadableNumbers(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  size_t i = 0;
  while (i < json.size()) {
    size_t end = i + 1;
    if (json[i] == '"') {
      end = SkipString(json, i);
      out.append(json.substr(i, end - i));
    } else if (json[i] == '-' || IsDigit(json[i])) {
      while (end < json.size() && IsNumberByte(json[end])) ++end;
      AppendNumber(json.substr(i, end - i), &out);
    } else {
      out += json[i];
    }
    i = end;
  }
  return out;
}

}  // namespace skein
