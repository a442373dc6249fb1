#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace skein {

// The scans read sixteen bytes at a time.
inline constexpr size_t kAsciiBlock = 16;

// Bit i is set if p[i] is one of A-Z and a-z. Reads kAsciiBlock bytes.
inline uint32_t AsciiLetterMask(const char* p) {
#ifdef __SSE2__
  // The comparison is signed, so the letters are shifted to the low end of the signed range.
  const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i lower = _mm_or_si128(block, _mm_set1_epi8(0x20));
  const __m128i moved = _mm_sub_epi8(lower, _mm_set1_epi8(static_cast<char>('a' + 0x80)));
  return static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmplt_epi8(moved, _mm_set1_epi8(-128 + 26))));
#else
  uint32_t mask = 0;
  for (size_t i = 0; i < kAsciiBlock; ++i) {
    const auto lower = static_cast<unsigned char>(p[i] | 0x20);
    mask |= static_cast<uint32_t>(lower >= 'a' && lower <= 'z') << i;
  }
  return mask;
#endif
}

// Bit i is set if p[i] >= limit, as unsigned bytes. Reads kAsciiBlock bytes.
inline uint32_t AtLeastMask(const char* p, unsigned char limit) {
#ifdef __SSE2__
  const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i limits = _mm_set1_epi8(static_cast<char>(limit));
  return static_cast<uint32_t>(
      _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(block, limits), block)));
#else
  uint32_t mask = 0;
  for (size_t i = 0; i < kAsciiBlock; ++i) {
    mask |= static_cast<uint32_t>(static_cast<unsigned char>(p[i]) >= limit) << i;
  }
  return mask;
#endif
}

// The position of the first byte >= limit at or after `pos`, or text.size().
inline size_t FindAtLeast(std::string_view text, size_t pos, unsigned char limit) {
  for (; pos + kAsciiBlock <= text.size(); pos += kAsciiBlock) {
    if (const uint32_t mask = AtLeastMask(text.data() + pos, limit); mask != 0) {
      return pos + std::countr_zero(mask);
    }
  }
  while (pos < text.size() && static_cast<unsigned char>(text[pos]) < limit) ++pos;
  return pos;
}

}  // namespace skein
