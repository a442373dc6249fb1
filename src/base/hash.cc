#include "base/hash.h"

#define XXH_STATIC_LINKING_ONLY  // the size of its state
#include <xxhash.h>

#include <new>

namespace skein {

uint64_t HashTokens(std::span<const int32_t> tokens, uint64_t seed) {
  return XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), seed);
}

uint64_t HashWords(std::span<const uint64_t> words, uint64_t seed) {
  return XXH3_64bits_withSeed(words.data(), words.size_bytes(), seed);
}

// By operator new: a failure is that of every other allocation.
TokenHashStream::TokenHashStream()
    : state_(new (std::align_val_t{alignof(XXH3_state_t)}) XXH3_state_t) {
  XXH3_INITSTATE(static_cast<XXH3_state_t*>(state_));
  Reset(0);
}

TokenHashStream::~TokenHashStream() {
  operator delete (state_, std::align_val_t{alignof(XXH3_state_t)});
}

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
