#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"
#include "text/unicode/utf8.h"

namespace skein::jinja {

// The operations of Python's str on UTF-8. All arguments and results are valid UTF-8.

size_t NumCodePoints(std::string_view text);
// The byte offset of the code point `index`; text.size() beyond the end.
size_t OffsetOfCodePoint(std::string_view text, size_t index);
bool IsAscii(std::string_view text);

// str.isspace of one character; \s matches the same characters.
bool IsSpace(char32_t code_point);
// str.strip, lstrip and rstrip. A null `chars` means white space.
std::string_view Strip(std::string_view text, const std::string* chars, bool left, bool right);
// The position of the first `needle` at or behind `from`, or npos. Linear time.
size_t FindText(std::string_view text, std::string_view needle, size_t from = 0);
// str.replace; `max_count` < 0 replaces all.
std::string ReplaceText(std::string_view text, std::string_view from, std::string_view to,
                        Integer max_count, RenderState* state);
// str.split and rsplit with a separator. `max_splits` < 0: no limit.
std::vector<std::string_view> SplitText(std::string_view text, std::string_view separator,
                                        Integer max_splits, bool from_right = false);
// str.split without a separator: splits at runs of white space.
std::vector<std::string_view> SplitSpace(std::string_view text, Integer max_splits);
// str.splitlines().
std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends);

// str.upper, lower, capitalize and title, and Jinja's own title. Some characters outside ASCII fail
// as unsupported: those whose result depends on neighbours, and those for which Python uses the
// title-case form.
enum class Case { kUpper, kLower, kCapitalize, kTitle, kJinjaTitle };
std::string ChangeCase(std::string_view text, Case to, RenderState* state);

std::string IntegerText(Integer value);
// repr(float).
std::string FloatText(double value);
// repr(str).
std::string QuotedText(std::string_view text);
// int(str) and float(str) of ASCII text; nullopt where Python raises ValueError.
std::optional<Integer> ParseInteger(std::string_view text);
std::optional<double> ParseFloat(std::string_view text);

}  // namespace skein::jinja
