#include "server/json/base64.h"

#include <cstdint>

namespace skein {

void AppendBase64(std::span<const std::byte> source, std::string* out) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto* bytes = reinterpret_cast<const unsigned char*>(source.data());
  const size_t size = source.size();
  const size_t begin = out->size();
  out->resize(begin + (size + 2) / 3 * 4);
  char* at = out->data() + begin;
  for (size_t i = 0; i < size; i += 3) {
    const size_t left = size - i;
    const uint32_t group = uint32_t{bytes[i]} << 16 | (left > 1 ? uint32_t{bytes[i + 1]} << 8 : 0) |
                           (left > 2 ? uint32_t{bytes[i + 2]} : 0);
    *at++ = kDigits[group >> 18];
    *at++ = kDigits[group >> 12 & 63];
    *at++ = left > 1 ? kDigits[group >> 6 & 63] : '=';
    *at++ = left > 2 ? kDigits[group & 63] : '=';
  }
}

}  // namespace skein
