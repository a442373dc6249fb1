#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace skein {

// The code point that starts at text[*pos]; *pos moves behind it. REQUIRES: valid UTF-8.
uint32_t NextCodePoint(std::string_view text, size_t* pos);
void AppendUtf8(uint32_t code_point, std::string* out);
bool IsValidUtf8(std::string_view text);
inline bool IsContinuationByte(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// How many bytes at the end of `text` may still become a character: the length of a maximal proper
// prefix of one character that ends the text, 0 to 3.
size_t IncompleteSuffixBytes(std::string_view text);

// Appends `bytes` with every maximal ill-formed part replaced by one U+FFFD (Unicode 16, section
// 3.9, "U+FFFD substitution of maximal subparts").
void AppendUtf8Lossy(std::string_view bytes, std::string* out);

}  // namespace skein
