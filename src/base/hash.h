#pragma once

#include <cstdint>
#include <span>

namespace skein {

// 64-bit hashes (xxHash, XXH3). They are the same on all machines with the same byte order. Not for
// secrets.
uint64_t HashTokens(std::span<const int32_t> tokens, uint64_t seed);
uint64_t HashWords(std::span<const uint64_t> words, uint64_t seed);

// Computes HashTokens of growing data: Digest equals HashTokens of all tokens since Reset.
// Allocates its state once. Not thread-safe.
class TokenHashStream {
 public:
  TokenHashStream();
  ~TokenHashStream();
  TokenHashStream(const TokenHashStream&) = delete;
  TokenHashStream& operator=(const TokenHashStream&) = delete;

  void Reset(uint64_t seed);
  void Append(std::span<const int32_t> tokens);
  uint64_t Digest() const;

 private:
  void* state_;  // owned state of xxHash
};

}  // namespace skein
