#include "kv/block_pool.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace skein {
namespace {

TEST(BlockPool, HandsOutEveryBlockOnce) {
  BlockPool pool(3);
  std::set<BlockId> blocks = {pool.Take(), pool.Take(), pool.Take()};
  EXPECT_EQ(blocks, (std::set<BlockId>{0, 1, 2}));
  EXPECT_EQ(pool.Take(), kNoBlock);
  pool.Unref(1);
  EXPECT_EQ(pool.Take(), 1);
  pool.CheckIntegrity();
}

TEST(BlockPool, EvictsInOrderOfRelease) {
  BlockPool pool(3);
  for (int i = 0; i < 3; ++i) pool.Keep(pool.Take());
  pool.Unref(2);
  pool.Unref(0);
  pool.Unref(1);
  pool.Ref(2);  // no longer the oldest, since it is used again
  pool.Unref(2);
  EXPECT_EQ(pool.num_cached(), 3);
  EXPECT_EQ(pool.EvictOldest(), 0);
  EXPECT_EQ(pool.EvictOldest(), 1);
  EXPECT_EQ(pool.EvictOldest(), 2);
  EXPECT_EQ(pool.EvictOldest(), kNoBlock);
  EXPECT_EQ(pool.num_free(), 3);
  pool.CheckIntegrity();
}

// Any sequence of calls gives the same results as plain sets and lists.
RC_GTEST_PROP(BlockPoolModel, AgreesWithANaiveModel, ()) {
  const auto num_blocks = *rc::gen::inRange(1, 12);
  BlockPool pool(num_blocks);
  std::map<BlockId, int> refs;
  std::set<BlockId> kept;
  std::deque<BlockId> cached;
  const auto calls = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, 6), rc::gen::inRange(0, num_blocks)));
  for (const auto& [call, block] : calls) {
    const bool is_cached = std::ranges::count(cached, block) > 0;
    if (call == 0) {
      const BlockId taken = pool.Take();
      const int free = num_blocks - static_cast<int>(refs.size() + cached.size());
      RC_ASSERT((taken != kNoBlock) == (free > 0));
      if (taken == kNoBlock) continue;
      RC_ASSERT(refs.count(taken) == 0u);
      RC_ASSERT(std::ranges::count(cached, taken) == 0);
      refs[taken] = 1;
    } else if (call == 1) {
      const BlockId evicted = pool.EvictOldest();
      RC_ASSERT(evicted == (cached.empty() ? kNoBlock : cached.front()));
      if (cached.empty()) continue;
      kept.erase(cached.front());
      cached.pop_front();
    } else if (call == 2 && (refs.count(block) > 0 || is_cached)) {
      pool.Ref(block);
      std::erase(cached, block);
      ++refs[block];
    } else if (call == 3 && refs.count(block) > 0) {
      pool.Unref(block);
      if (--refs[block] > 0) continue;
      refs.erase(block);
      if (kept.count(block) > 0) cached.push_back(block);
    } else if (call == 4 && refs.count(block) > 0) {
      pool.Keep(block);
      kept.insert(block);
    } else if (call == 5 && kept.count(block) > 0) {
      pool.Discard(block);
      kept.erase(block);
      std::erase(cached, block);
    }
    pool.CheckIntegrity();
    RC_ASSERT(pool.num_cached() == static_cast<int>(cached.size()));
    RC_ASSERT(pool.num_referenced() == static_cast<int>(refs.size()));
    for (const auto& [id, count] : refs) RC_ASSERT(pool.ref_count(id) == count);
  }
}

}  // namespace
}  // namespace skein
