#include "kv/state_pool.h"

#include <gtest/gtest.h>

#include <vector>

#include "kv/block_manager.h"

namespace skein {
namespace {

TEST(StatePool, IsOffWithoutStates) {
  const StatePool pool(0, 4);
  EXPECT_FALSE(pool.enabled());
  EXPECT_EQ(pool.Find(3), kNoState);
  EXPECT_EQ(pool.num_available(), 0);
}

TEST(StatePool, SnapshotsStayUntilTheirSlotIsNeeded) {
  StatePool pool(2, 8);
  const StateId first = pool.Take(), second = pool.Take();
  EXPECT_EQ(pool.Take(), kNoState);
  pool.Keep(5, first);
  pool.Keep(6, second);
  pool.Unref(second);
  pool.Unref(first);
  EXPECT_EQ(pool.num_available(), 2);
  EXPECT_EQ(pool.Find(5), first);
  // A snapshot that is used again becomes the younger one.
  pool.Ref(second);
  pool.Unref(second);
  EXPECT_EQ(pool.Take(), first);
  EXPECT_EQ(pool.Find(5), kNoState);
  EXPECT_EQ(pool.Find(6), second);
  pool.CheckIntegrity();
}

TEST(StatePool, ABlockHasOneSnapshotWhichGoesWithIt) {
  StatePool pool(3, 8);
  const StateId first = pool.Take(), second = pool.Take();
  pool.Keep(5, first);
  pool.Keep(5, second);
  EXPECT_EQ(pool.Find(5), first);
  pool.Unref(first);
  pool.Unref(second);
  EXPECT_EQ(pool.num_snapshots(), 1);
  pool.Forget(5);
  EXPECT_EQ(pool.Find(5), kNoState);
  EXPECT_EQ(pool.num_available(), 3);
  pool.CheckIntegrity();
  for (int i = 0; i < 3; ++i) EXPECT_NE(pool.Take(), kNoState);
  EXPECT_EQ(pool.Take(), kNoState);
}

// A prefix is found only up to a block with a snapshot, however far keys and values are cached.
TEST(StatePool, BoundsThePrefixThatIsFound) {
  BlockManager manager(8, true, 2);
  const std::vector<int32_t> tokens(4 * kBlockTokens, 7);
  PrefixHashes hashes;
  hashes.Extend(tokens);
  std::vector<BlockId> blocks;
  for (int32_t i = 0; i < 4; ++i) blocks.push_back(manager.Allocate());
  for (int32_t i = 0; i < 4; ++i) ASSERT_TRUE(manager.Publish(hashes, tokens, i, blocks));
  const auto find = [&] {
    std::vector<BlockId> found;
    const BlockManager::Prefix prefix = manager.FindPrefix(hashes, tokens, 4, &found);
    EXPECT_EQ(prefix.num_present, 4);
    EXPECT_EQ(std::ssize(found), prefix.num_blocks);
    return prefix.num_blocks;
  };
  EXPECT_EQ(find(), 0);
  const StateId state = manager.states().Take();
  manager.states().Keep(blocks[1], state);
  EXPECT_EQ(find(), 2);
  manager.states().Unref(state);
  manager.Release(blocks);
  EXPECT_EQ(find(), 2);
  // A snapshot is forgotten with its block; the last blocks are evicted first.
  for (int i = 0; i < 4 + 3; ++i) ASSERT_NE(manager.Allocate(), kNoBlock);
  EXPECT_EQ(manager.states().Find(blocks[1]), kNoState);
  manager.CheckIntegrity();
}

}  // namespace
}  // namespace skein
