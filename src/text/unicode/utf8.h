#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace skein {

// Returns the code point that starts at text[*pos]; *pos moves to its end. REQUIRES: valid UTF-8.
inline uint32_t NextCodePoint(std::string_view text, size_t* pos) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data()) + *pos;
  if (p[0] < 0x80) {
    *pos += 1;
    return p[0];
  }
  if (p[0] < 0xE0) {
    *pos += 2;
    return (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
  }
  if (p[0] < 0xF0) {
    *pos += 3;
    return (p[0] & 0xFu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
  }
  *pos += 4;
  return (p[0] & 7u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
}
void AppendUtf8(uint32_t code_point, std::string* out);
bool IsValidUtf8(std::string_view text);
inline bool IsContinuationByte(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// The number of bytes (0 to 3) at the end of `text` that may still become a character: the length
// of a maximal beginning of a character that is not the whole character.
size_t IncompleteSuffixBytes(std::string_view text);

// Appends `bytes`, with every maximal invalid part replaced by one U+FFFD (Unicode 16, section 3.9,
// "U+FFFD substitution of maximal subparts").
void AppendUtf8Lossy(std::string_view bytes, std::string* out);

}  // namespace skein
