#include "text/tokenizer/models/byte_alphabet.h"

#include "text/unicode/utf8.h"

namespace skein {

ByteAlphabet::ByteAlphabet() {
  bytes_.fill(-1);
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const uint32_t code_point = printable ? byte : next++;
    AppendUtf8(code_point, &chars_[byte]);
    bytes_[code_point] = static_cast<int16_t>(byte);
  }
}

std::optional<uint8_t> ByteAlphabet::ByteOf(uint32_t code_point) const {
  if (code_point >= bytes_.size() || bytes_[code_point] < 0) return std::nullopt;
  return static_cast<uint8_t>(bytes_[code_point]);
}

bool ByteAlphabet::AppendUnmapped(std::string_view text, std::string* out) const {
  const size_t begin = out->size();
  for (size_t pos = 0; pos < text.size();) {
    const std::optional<uint8_t> byte = ByteOf(NextCodePoint(text, &pos));
    if (!byte) {
      out->resize(begin);
      return false;
    }
    out->push_back(static_cast<char>(*byte));
  }
  return true;
}

std::optional<std::string> ByteAlphabet::Unmap(std::string_view text) const {
  std::string bytes;
  if (!AppendUnmapped(text, &bytes)) return std::nullopt;
  return bytes;
}

std::string ByteAlphabet::Map(std::string_view bytes) const {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) text += CharOf(static_cast<uint8_t>(c));
  return text;
}

}  // namespace skein
