#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace skein {

// The reversible spelling of bytes as printable characters that byte-level vocabularies use
// (GPT-2). Printable Latin-1 characters stand for themselves; the other bytes become U+0100 and up,
// in order.
class ByteAlphabet {
 public:
  ByteAlphabet();

  const std::string& CharOf(uint8_t byte) const { return chars_[byte]; }
  std::optional<uint8_t> ByteOf(uint32_t code_point) const;
  // The bytes that `text` spells; nullopt if one of its characters is not in the alphabet.
  std::optional<std::string> Unmap(std::string_view text) const;
  // Appends the result of Unmap and returns true. If there is no result, appends nothing and
  // returns false.
  bool AppendUnmapped(std::string_view text, std::string* out) const;
  std::string Map(std::string_view bytes) const;

 private:
  std::array<std::string, 256> chars_;
  std::array<int16_t, 0x144> bytes_;  // by code point; -1: none
};

}  // namespace skein
