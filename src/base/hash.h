#pragma once

#include <cstdint>
#include <span>

namespace skein {

// 64-bit hashes (xxHash, XXH3), the same on every machine of one byte order. Not for secrets.
uint64_t HashTokens(std::span<const int32_t> tokens, uint64_t seed);
uint64_t HashWords(std::span<const uint64_t> words, uint64_t seed);

}  // namespace skein
