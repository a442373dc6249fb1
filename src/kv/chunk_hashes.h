#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "kv/prefix_hashes.h"

namespace skein {

// A request's hash vector as ChunkedHashTree reads it. Number l covers all tokens from the first to
// the end of chunk l; the last chunk may be shorter than the others and then counts like them:
//
//   tokens  |-- chunk 0 --|-- chunk 1 --|-- chunk 2 --|- 3 -|
//           ............................................... number 3 covers this
//
// A view: what it points to outlives it, unchanged.
struct ChunkHashes {
  const uint64_t* every = nullptr;  // hashes of units; a full chunk is `stride` of them
  int32_t stride = 1;
  int32_t num_full = 0;  // full chunks
  int32_t num_chunks = 0;
  uint64_t tail = 0;  // of the last chunk where that is not full

  uint64_t operator[](int32_t chunk) const {
    return chunk < num_full ? every[(chunk + 1) * stride - 1] : tail;
  }
};

// Chunks of `blocks_per_chunk` KV blocks, out of the hashes that the request has anyway: nothing
// but a last chunk that ends inside a block is hashed. REQUIRES: `hashes` has all full blocks of
// `tokens`; blocks_per_chunk >= 1.
ChunkHashes SubsampleChunks(const PrefixHashes& hashes, std::span<const int32_t> tokens,
                            int32_t blocks_per_chunk);

// Hash vectors of chunks of any size, in two constructions; the two never mix. Both are one pass
// over the tokens. The first is one hash function fed chunk by chunk and read at each chunk's end.
// In the second each chunk is hashed by itself, which any number of threads could do, and then
// number l is a hash of (chunk l's hash, number l - 1): a chain over 16 bytes a chunk.
// Vectors keep their memory from call to call. Not thread-safe.
class ChunkHasher {
 public:
  // REQUIRES: chunk_tokens >= 1.
  explicit ChunkHasher(int32_t chunk_tokens);

  void Streaming(std::span<const int32_t> tokens, uint64_t seed, std::vector<uint64_t>* hashes);
  void Chained(std::span<const int32_t> tokens, uint64_t seed, std::vector<uint64_t>* hashes);

 private:
  const size_t chunk_tokens_;
  TokenHashStream stream_;
};

// All of a vector that ChunkHasher made.
ChunkHashes ViewOf(std::span<const uint64_t> hashes);

}  // namespace skein
