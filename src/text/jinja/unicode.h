#pragma once

#include <string>

namespace skein::jinja {

// Python's properties of single characters outside ASCII.

// The characters first, first + stride, ..., last. Each character c maps to c + delta.
struct CaseRun {
  char32_t first, last;
  int32_t stride, delta;
};
struct CaseExpansion {
  char32_t from;
  const char* to;  // UTF-8
};
struct CodePointRun {
  char32_t first, last;
};

// Appends str.upper or str.lower of one character. REQUIRES: code_point >= 0x80.
void AppendUpper(char32_t code_point, std::string* text);
void AppendLower(char32_t code_point, std::string* text);

// str.isprintable of one character. REQUIRES: code_point >= 0x80.
bool IsPrintable(char32_t code_point);

}  // namespace skein::jinja
