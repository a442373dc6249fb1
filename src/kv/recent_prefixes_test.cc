#include "kv/recent_prefixes.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "base/random.h"
#include "kv/block_pool.h"

namespace skein {
namespace {

// Makes `num_blocks` blocks; all tokens are 0 except those of block number `fork` and later ones.
PrefixHashes Hashes(int32_t num_blocks, int32_t fork, int32_t token, int32_t adapter_id = 0) {
  std::vector<int32_t> tokens(num_blocks * kBlockTokens, 0);
  for (int32_t i = fork * kBlockTokens; i < std::ssize(tokens); ++i) tokens[i] = token;
  PrefixHashes hashes({.adapter_id = adapter_id});
  hashes.Extend(tokens);
  return hashes;
}

TEST(RecentPrefixes, SharedIsWhatTwoPromptsHaveInCommon) {
  RecentPrefixes recent(10, 100);
  const PrefixHashes first = Hashes(10, 6, 1), second = Hashes(8, 6, 2);
  recent.Note(first);
  EXPECT_EQ(recent.NumShared(first, 10), 0);
  EXPECT_EQ(recent.NumShared(second, 8), 0);
  recent.Note(second);
  EXPECT_EQ(recent.NumShared(first, 10), 6);
  EXPECT_EQ(recent.NumShared(second, 8), 6);
  EXPECT_EQ(recent.NumShared(second, 4), 4);
  recent.Note(Hashes(8, 6, 2, /*adapter_id=*/1));
  EXPECT_EQ(recent.NumShared(second, 8), 6);
}

TEST(RecentPrefixes, WhatComesNoMoreIsForgotten) {
  RecentPrefixes recent(2, 5);
  const PrefixHashes shared = Hashes(4, 0, 1);
  recent.Note(shared);
  recent.Note(shared);
  int32_t num_prompts = 0;
  while (recent.NumShared(shared, 4) > 0) recent.Note(Hashes(5, 0, 100 + num_prompts++));
  EXPECT_GE(num_prompts, 10 / 5);
  EXPECT_LE(num_prompts, 2 * 10 / 5 + 1);
  recent.Note(shared);
  EXPECT_EQ(recent.NumShared(shared, 4), 0);
}

// Prompts with more blocks than the limit do not evict one another by the blocks beyond it.
TEST(RecentPrefixes, WhatCannotBeKeptIsNotRemembered) {
  constexpr int32_t kMost = 10;
  RecentPrefixes recent(4, kMost);
  const PrefixHashes a = Hashes(500, 0, 1), b = Hashes(500, 0, 2);
  recent.Note(a);
  recent.Note(b);
  recent.Note(a);
  EXPECT_EQ(recent.NumShared(a, kMost), kMost);
  EXPECT_EQ(recent.NumShared(a, 500), kMost);
  EXPECT_EQ(recent.NumShared(b, 500), 0);
}

// Compares with a scan. Every reported block is shared. A block that two prompts share is reported
// if fewer blocks than the capacity came between the prompts.
TEST(RecentPrefixes, RandomPromptsAgreeWithAScan) {
  constexpr int64_t kCapacity = 60;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    RecentPrefixes recent(kCapacity / 12, 12);
    std::vector<PrefixHashes> all;
    for (int i = 0; i < 200; ++i) {
      const auto num_blocks = static_cast<int32_t>(random.Between(1, 12));
      const auto fork = static_cast<int32_t>(random.Between(0, num_blocks));
      all.push_back(Hashes(num_blocks, fork, static_cast<int32_t>(random.Between(1, 4))));
      const PrefixHashes& last = all.back();
      recent.Note(last);
      const int32_t found = recent.NumShared(last, num_blocks);
      int32_t ever = 0, lately = 0;
      int64_t blocks_since = 0;
      for (size_t j = all.size() - 1; j-- > 0;) {
        int32_t common = 0;
        while (common < std::min(num_blocks, all[j].num_blocks()) &&
               all[j][common] == last[common]) {
          ++common;
        }
        ever = std::max(ever, common);
        if (blocks_since < kCapacity) lately = std::max(lately, common);
        blocks_since += all[j].num_blocks();
      }
      EXPECT_LE(found, ever);
      EXPECT_GE(found, lately);
    }
  }
}

}  // namespace
}  // namespace skein
