#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace skein::jinja {

// Python's str over UTF-8. All texts given and returned are valid UTF-8.

bool IsValidUtf8(std::string_view text);
// The code point at *pos, which moves behind it. REQUIRES: *pos < text.size().
char32_t NextCodePoint(std::string_view text, size_t* pos);
void AppendCodePoint(char32_t code_point, std::string* text);
size_t NumCodePoints(std::string_view text);
// Byte offset of the index-th code point; text.size() beyond the end.
size_t OffsetOfCodePoint(std::string_view text, size_t index);
bool IsAscii(std::string_view text);

// str.isspace of one character; also what \s matches.
bool IsSpace(char32_t code_point);
// str.strip, lstrip and rstrip. Without `chars`: white space.
std::string_view Strip(std::string_view text, const std::string* chars, bool left, bool right);
// Position of the first `needle` at or behind `from`, npos if there is none. Linear time.
size_t FindText(std::string_view text, std::string_view needle, size_t from = 0);
size_t FindLastText(std::string_view text, std::string_view needle);
size_t CountText(std::string_view text, std::string_view needle);
// str.replace; `max_count` < 0 replaces all.
std::string ReplaceText(std::string_view text, std::string_view from, std::string_view to,
                        Integer max_count, RenderState* state);
// str.split and rsplit. Without `separator`: runs of white space. `max_splits` < 0: no limit.
std::vector<std::string_view> SplitText(std::string_view text, const std::string* separator,
                                        Integer max_splits, bool from_right);
// str.splitlines().
std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends);

// str.upper, lower, capitalize and title, and Jinja's own title. What depends on the letters around
// it fails as unsupported.
enum class Case { kUpper, kLower, kCapitalize, kTitle, kJinjaTitle };
std::string ChangeCase(std::string_view text, Case to, RenderState* state);

std::string IntegerText(Integer value);
// repr(float).
std::string FloatText(double value);
// repr(str).
std::string QuotedText(std::string_view text);
// int(str) in base 10 and float(str); nullopt where Python raises ValueError.
std::optional<Integer> ParseInteger(std::string_view text, int base);
std::optional<double> ParseFloat(std::string_view text);

}  // namespace skein::jinja
