#include "base/hash.h"

#include <xxhash.h>

namespace skein {

uint64_t HashTokens(std::span<const int32_t> tokens, uint64_t seed) {
  return XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), seed);
}

uint64_t HashWords(std::span<const uint64_t> words, uint64_t seed) {
  return XXH3_64bits_withSeed(words.data(), words.size_bytes(), seed);
}

}  // namespace skein
