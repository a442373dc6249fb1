#include "kv/chunk_hashes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "kv/block_pool.h"

namespace skein {
namespace {

std::vector<int32_t> RandomTokens(int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random.Between(0, 50000));
  return tokens;
}

TEST(ChunkHashes, StreamingIsTheHashOfEveryPrefix) {
  const auto tokens = RandomTokens(1000, 1);
  for (const int32_t chunk : {1, 7, 32, 256, 5000}) {
    ChunkHasher hasher(chunk);
    std::vector<uint64_t> hashes;
    hasher.Streaming(tokens, 5, &hashes);
    ASSERT_EQ(std::ssize(hashes), (1000 + chunk - 1) / chunk);
    for (size_t i = 0; i < hashes.size(); ++i) {
      const size_t end = std::min<size_t>(1000, (i + 1) * chunk);
      EXPECT_EQ(hashes[i], HashTokens(std::span(tokens).first(end), 5));
    }
  }
}

// By both methods, two vectors are equal exactly up to the first difference of their tokens.
TEST(ChunkHashes, VectorsPartWhereTheTokensDo) {
  Random random(2);
  for (int round = 0; round < 100; ++round) {
    const auto chunk = static_cast<int32_t>(random.Between(1, 64));
    auto a = RandomTokens(random.Between(1, 500), 2 * round);
    auto b = RandomTokens(random.Between(1, 500), 2 * round + 1);
    const int64_t common = random.Between(0, std::min(std::ssize(a), std::ssize(b)));
    std::copy(a.begin(), a.begin() + common, b.begin());
    if (common < std::min(std::ssize(a), std::ssize(b))) b[common] = a[common] + 1;
    ChunkHasher hasher(chunk);
    std::vector<uint64_t> hash_a, hash_b;
    for (const bool streaming : {true, false}) {
      const auto hash = [&](const std::vector<int32_t>& tokens, std::vector<uint64_t>* hashes) {
        streaming ? hasher.Streaming(tokens, 7, hashes) : hasher.Chained(tokens, 7, hashes);
      };
      hash(a, &hash_a);
      hash(b, &hash_b);
      const auto end_a =
          std::mismatch(hash_a.begin(), hash_a.end(), hash_b.begin(), hash_b.end()).first;
      const bool same_end = common == std::ssize(a) && common == std::ssize(b);
      EXPECT_EQ(end_a - hash_a.begin(), same_end ? std::ssize(hash_a) : common / chunk);
    }
  }
}

TEST(ChunkHashes, SubsamplesTheBlockHashes) {
  for (const int64_t num_tokens : {1, 31, 32, 33, 64, 100, 128, 129, 1000}) {
    const auto tokens = RandomTokens(num_tokens, num_tokens);
    PrefixHashes blocks;
    blocks.Extend(tokens);
    for (const int32_t stride : {1, 2, 3, 8}) {
      const ChunkHashes chunks = SubsampleChunks(blocks, tokens, stride);
      const int64_t chunk_tokens = int64_t{kBlockTokens} * stride;
      ASSERT_EQ(chunks.num_chunks, (num_tokens + chunk_tokens - 1) / chunk_tokens);
      ASSERT_EQ(chunks.num_full, num_tokens / chunk_tokens);
      for (int32_t i = 0; i < chunks.num_full; ++i) {
        EXPECT_EQ(chunks[i], blocks[(i + 1) * stride - 1]);
      }
    }
  }
}

TEST(ChunkHashes, APartialLastChunkIsItsOwnTokens) {
  auto tokens = RandomTokens(100, 3);
  PrefixHashes blocks;
  blocks.Extend(tokens);
  const auto tail_of = [&](std::span<const int32_t> some, int32_t stride) {
    return SubsampleChunks(
        blocks, some,
        stride)[0 + (static_cast<int32_t>(some.size()) - 1) / (kBlockTokens * stride)];
  };
  const uint64_t tail = tail_of(tokens, 1);
  EXPECT_NE(tail, tail_of(std::span(tokens).first(99), 1));
  tokens[99] += 1;
  EXPECT_NE(tail, tail_of(tokens, 1));
  // The tokens end with a block but not with a chunk, so the last chunk's hash is the block's hash.
  EXPECT_EQ(tail_of(std::span(tokens).first(96), 2), blocks[2]);
  // The last chunk is shorter than a block.
  EXPECT_NE(tail_of(std::span(tokens).first(5), 1), tail_of(std::span(tokens).first(6), 1));
}

}  // namespace
}  // namespace skein
