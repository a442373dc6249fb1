#include "kv/prefix_index.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/random.h"

namespace skein {
namespace {

std::vector<int32_t> BlockOf(int32_t token) { return std::vector<int32_t>(kBlockTokens, token); }

TEST(PrefixHashes, EachHashCoversAllTokensBefore) {
  std::vector<int32_t> a(100, 1), b(100, 1);
  b[0] = 2;
  PrefixHashes hashes_a, hashes_b, salted({.cache_salt = 5}), adapted({.adapter_id = 1});
  hashes_a.Extend(a);
  hashes_b.Extend(b);
  salted.Extend(a);
  adapted.Extend(a);
  ASSERT_EQ(hashes_a.num_blocks(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(hashes_a[i], hashes_b[i]);
    EXPECT_NE(hashes_a[i], salted[i]);
    EXPECT_NE(hashes_a[i], adapted[i]);
  }
  EXPECT_NE(hashes_a[0], hashes_a[1]);
}

TEST(PrefixHashes, GrowingGivesWhatOnePassGives) {
  Random random(11);
  std::vector<int32_t> tokens(500);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random.Between(0, 9));
  PrefixHashes once, grown;
  once.Extend(tokens);
  for (size_t n = 0; n <= tokens.size(); n += random.Between(1, 50)) {
    grown.Extend(std::span(tokens).first(n));
  }
  grown.Extend(tokens);
  ASSERT_EQ(once.num_blocks(), grown.num_blocks());
  for (int i = 0; i < once.num_blocks(); ++i) EXPECT_EQ(once[i], grown[i]);
}

TEST(PrefixIndex, ConfirmsHitsOnContent) {
  PrefixIndex index(4);
  const auto ones = BlockOf(1), twos = BlockOf(2);
  const PrefixKey key = {.hash = 99, .tokens = ones};
  ASSERT_TRUE(index.Insert(key, 0));
  EXPECT_EQ(index.Find(key), 0);
  // The hashes are equal by accident; tokens, parent or scope differ.
  EXPECT_EQ(index.Find({.hash = 99, .tokens = twos}), kNoBlock);
  EXPECT_EQ(index.Find({.hash = 99, .parent = 0, .tokens = ones}), kNoBlock);
  EXPECT_EQ(index.Find({.hash = 99, .scope = {.cache_salt = 1}, .tokens = ones}), kNoBlock);
  EXPECT_FALSE(index.Insert({.hash = 99, .tokens = twos}, 1));
  EXPECT_EQ(index.Find(key), 0);
  index.CheckIntegrity();
}

// Few distinct low hash bits force long probe runs that wrap around the end of the table.
TEST(PrefixIndex, AgreesWithANaiveModel) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto num_blocks = static_cast<int32_t>(random.Between(1, 24));
    PrefixIndex index(num_blocks);
    std::map<uint64_t, BlockId> model;
    std::map<BlockId, uint64_t> hash_of;
    std::map<BlockId, BlockId> parent_of;
    const auto tokens = BlockOf(7);
    for (int step = 0; step < 300; ++step) {
      const auto block = static_cast<BlockId>(random.Between(0, num_blocks - 1));
      if (!hash_of.contains(block)) {
        const uint64_t hash = (random.Bits() % 64 << 32) | (62 + random.Bits() % 4);
        BlockId parent = kNoBlock;
        if (!hash_of.empty() && random.OneIn(2)) parent = hash_of.begin()->first;
        const PrefixKey key = {.hash = hash, .parent = parent, .tokens = tokens};
        if (index.Find(key) != kNoBlock) continue;
        ASSERT_EQ(index.Insert(key, block), !model.contains(hash));
        if (model.contains(hash)) continue;
        model[hash] = block;
        hash_of[block] = hash;
        parent_of[block] = parent;
      } else {
        bool has_child = false;
        for (const auto& [child, parent] : parent_of) has_child |= parent == block;
        if (has_child) continue;
        index.Erase(block);
        model.erase(hash_of[block]);
        hash_of.erase(block);
        parent_of.erase(block);
      }
      index.CheckIntegrity();
      ASSERT_EQ(index.size(), static_cast<int32_t>(model.size()));
      for (const auto& [hash, id] : model) {
        ASSERT_EQ(index.Find({.hash = hash, .parent = parent_of[id], .tokens = tokens}), id);
      }
    }
  }
}

}  // namespace
}  // namespace skein
