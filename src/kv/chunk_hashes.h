#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "kv/prefix_hashes.h"

namespace skein {

// The hash vector of a request for ChunkedHashTree. Number l covers all tokens from the first to
// the end of chunk l. The last chunk may be shorter; it counts like the others:
//
//   tokens  |-- chunk 0 --|-- chunk 1 --|-- chunk 2 --|- 3 -|
//           ............................................... number 3 covers this
//
// This is a view: its target outlives it, and does not change.
struct ChunkHashes {
  const uint64_t* every = nullptr;  // hashes of units; a full chunk has `stride` units
  int32_t stride = 1;
  int32_t num_full = 0;  // the number of full chunks
  int32_t num_chunks = 0;
  uint64_t tail = 0;  // the hash of the last chunk, if that chunk is not full

  uint64_t operator[](int32_t chunk) const {
    return chunk < num_full ? every[(chunk + 1) * stride - 1] : tail;
  }
};

// Makes chunks of `blocks_per_chunk` KV blocks from the request's block hashes. Only a last chunk
// that ends inside a block needs a new hash. REQUIRES: `hashes` has all full blocks of `tokens`;
// blocks_per_chunk >= 1.
ChunkHashes SubsampleChunks(const PrefixHashes& hashes, std::span<const int32_t> tokens,
                            int32_t blocks_per_chunk);

// Hash vectors of chunks of any size, by two methods whose results must not be mixed. Both methods
// take one pass over the tokens. The first method feeds one hash function and reads it at each
// chunk's end. The second method hashes each chunk separately, which threads could do in parallel.
// Its number l is then a hash of (chunk l's hash, number l - 1): a chain over 16 bytes a chunk.
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

// A view of a complete vector of ChunkHasher.
ChunkHashes ViewOf(std::span<const uint64_t> hashes);

}  // namespace skein
