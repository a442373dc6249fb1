#include "server/decisions/heads/python_text.h"

namespace skein {
namespace {

// Python's white space other than that of ASCII, in UTF-8.
constexpr std::string_view kPythonSpaces[] = {
    "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81",
    "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
    "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
    "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};

bool IsPythonSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 28 && c <= 31); }

}  // namespace

std::string_view WithoutLeadingSpace(std::string_view text) {
  for (bool again = true; again && !text.empty();) {
    again = IsPythonSpace(text.front());
    if (again) text.remove_prefix(1);
    for (const std::string_view space : kPythonSpaces) {
      if (!text.starts_with(space)) continue;
      text.remove_prefix(space.size());
      again = true;
    }
  }
  return text;
}

std::string_view Stripped(std::string_view text) {
  text = WithoutLeadingSpace(text);
  for (bool again = true; again && !text.empty();) {
    again = IsPythonSpace(text.back());
    if (again) text.remove_suffix(1);
    for (const std::string_view space : kPythonSpaces) {
      if (!text.ends_with(space)) continue;
      text.remove_suffix(space.size());
      again = true;
    }
  }
  return text;
}

}  // namespace skein
