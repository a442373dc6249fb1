#include "kv/chunk_hashes.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "kv/block_pool.h"

namespace skein {

ChunkHashes SubsampleChunks(const PrefixHashes& hashes, std::span<const int32_t> tokens,
                            int32_t blocks_per_chunk) {
  SKEIN_CHECK(blocks_per_chunk >= 1);
  const auto num_tokens = static_cast<int64_t>(tokens.size());
  const int64_t chunk_tokens = int64_t{kBlockTokens} * blocks_per_chunk;
  const auto num_blocks = static_cast<int32_t>(num_tokens / kBlockTokens);
  SKEIN_CHECK(hashes.num_blocks() >= num_blocks);
  ChunkHashes chunks = {
      .every = hashes.blocks().data(),
      .stride = blocks_per_chunk,
      .num_full = static_cast<int32_t>(num_tokens / chunk_tokens),
      .num_chunks = static_cast<int32_t>((num_tokens + chunk_tokens - 1) / chunk_tokens)};
  if (chunks.num_chunks == chunks.num_full) return chunks;
  const uint64_t last = num_blocks == 0 ? hashes.root() : hashes[num_blocks - 1];
  const auto rest = tokens.subspan(int64_t{num_blocks} * kBlockTokens);
  chunks.tail = rest.empty() ? last : HashTokens(rest, last);
  return chunks;
}

ChunkHasher::ChunkHasher(int32_t chunk_tokens) : chunk_tokens_(chunk_tokens) {
  SKEIN_CHECK(chunk_tokens >= 1);
}

void ChunkHasher::Streaming(std::span<const int32_t> tokens, uint64_t seed,
                            std::vector<uint64_t>* hashes) {
  hashes->clear();
  stream_.Reset(seed);
  while (!tokens.empty()) {
    const size_t count = std::min(chunk_tokens_, tokens.size());
    stream_.Append(tokens.first(count));
    hashes->push_back(stream_.Digest());
    tokens = tokens.subspan(count);
  }
}

void ChunkHasher::Chained(std::span<const int32_t> tokens, uint64_t seed,
                          std::vector<uint64_t>* hashes) {
  hashes->clear();
  while (!tokens.empty()) {
    const size_t count = std::min(chunk_tokens_, tokens.size());
    hashes->push_back(HashTokens(tokens.first(count), seed));
    tokens = tokens.subspan(count);
  }
  uint64_t before = seed;
  for (uint64_t& hash : *hashes) {
    const std::array<uint64_t, 2> words = {hash, before};
    before = hash = HashWords(words, seed);
  }
}

ChunkHashes ViewOf(std::span<const uint64_t> hashes) {
  const auto count = static_cast<int32_t>(hashes.size());
  return {.every = hashes.data(), .num_full = count, .num_chunks = count};
}

}  // namespace skein
