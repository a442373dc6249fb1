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

// Tentative snapshots replace each other once they hold a quarter of the states.
TEST(StatePool, TentativeSnapshotsTakeFewStates) {
  StatePool pool(8, 16);
  const auto keep = [&](BlockId block, bool tentative) {
    const StateId state = tentative ? pool.TakeTentative() : pool.Take();
    ASSERT_NE(state, kNoState);
    pool.Keep(block, state);
    pool.Unref(state);
  };
  for (BlockId block = 0; block < 6; ++block) keep(block, false);
  for (BlockId block = 10; block < 13; ++block) keep(block, true);
  for (BlockId block = 0; block < 6; ++block) EXPECT_NE(pool.Find(block), kNoState) << block;
  EXPECT_EQ(pool.Find(10), kNoState);
  EXPECT_NE(pool.Find(11), kNoState);
  // A sequence starts from one: it counts no longer, so that the others have its share.
  const StateId started = pool.Find(11);
  pool.Start(started);
  pool.Unref(started);
  keep(13, true);
  EXPECT_EQ(pool.Find(11), started);
  EXPECT_NE(pool.Find(12), kNoState);
  EXPECT_EQ(pool.Find(0), kNoState);  // the least recently used one made way
  pool.CheckIntegrity();
  // States in use leave none for tentative snapshots.
  for (int i = 0; i < 5; ++i) EXPECT_NE(pool.Take(), kNoState);
  EXPECT_EQ(pool.TakeTentative(), kNoState);
  EXPECT_NE(pool.Take(), kNoState);
  pool.CheckIntegrity();
}

TEST(StatePool, ASnapshotBecomesTentativeUnlessItWasUsed) {
  StatePool pool(8, 16);
  std::vector<StateId> states;
  for (BlockId block = 0; block < 5; ++block) {
    states.push_back(pool.Take());
    pool.Keep(block, states.back());
    if (block == 1) pool.Start(states.back());
    if (block == 1) pool.Unref(states.back());
    pool.Unref(states.back());
  }
  for (BlockId block = 0; block < 4; ++block) pool.MakeTentative(block, states[block]);
  // A quarter of eight is two: the oldest of the three had to go.
  EXPECT_EQ(pool.Find(0), kNoState);
  for (BlockId block = 1; block < 5; ++block) EXPECT_EQ(pool.Find(block), states[block]) << block;
  EXPECT_EQ(pool.num_snapshots(), 4);
  pool.MakeTentative(4, states[3]);  // that is not the block's snapshot
  EXPECT_EQ(pool.num_snapshots(), 4);
  pool.CheckIntegrity();
}

TEST(StatePool, ASnapshotIsDroppedUnlessItWasUsed) {
  StatePool pool(3, 8);
  const StateId first = pool.Take(), second = pool.Take();
  pool.Keep(5, first);
  pool.Keep(6, second);
  pool.DropUnused(5, second);  // that is not the block's snapshot
  EXPECT_EQ(pool.Find(5), first);
  pool.DropUnused(5, first);
  EXPECT_EQ(pool.Find(5), kNoState);
  EXPECT_EQ(pool.ref_count(first), 1);
  pool.Start(second);
  pool.DropUnused(6, second);
  EXPECT_EQ(pool.Find(6), second);
  pool.Unref(first);
  pool.Unref(second);
  pool.Unref(second);
  EXPECT_EQ(pool.num_snapshots(), 1);
  EXPECT_EQ(pool.num_available(), 3);
  pool.CheckIntegrity();
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
