#include "base/hash.h"

#include <xxhash.h>

#include "base/check.h"

namespace skein {

uint64_t HashTokens(std::span<const int32_t> tokens, uint64_t seed) {
  return XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), seed);
}

uint64_t HashWords(std::span<const uint64_t> words, uint64_t seed) {
  return XXH3_64bits_withSeed(words.data(), words.size_bytes(), seed);
}

TokenHashStream::TokenHashStream() : state_(XXH3_createState()) {
  SKEIN_CHECK(state_ != nullptr);
  Reset(0);
}

TokenHashStream::~TokenHashStream() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }

void TokenHashStream::Reset(uint64_t seed) {
  XXH3_64bits_reset_withSeed(static_cast<XXH3_state_t*>(state_), seed);
}

void TokenHashStream::Append(std::span<const int32_t> tokens) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state_), tokens.data(), tokens.size_bytes());
}

uint64_t TokenHashStream::Digest() const {
  return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_));
}

}  // namespace skein
