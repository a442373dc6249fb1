#include "sched/order/depth_first.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace skein {
namespace {

TEST(RankDepthFirst, OfNobodyIsNothing) { RankDepthFirst({}); }

TEST(RankDepthFirst, HeavyBranchesFirstNodesAfterTheirBranches) {
  const std::vector<uint64_t> light = {1}, heavy = {2}, deep = {2, 3};
  std::vector<CachedPath> paths = {{.hashes = light, .arrival = 0, .index = 0},
                                   {.hashes = heavy, .arrival = 1, .index = 1},
                                   {.hashes = {}, .arrival = 2, .index = 2},
                                   {.hashes = deep, .arrival = 3, .index = 3}};
  RankDepthFirst(paths);
  std::ranges::sort(paths, {}, &CachedPath::rank);
  std::vector<int32_t> order;
  for (const CachedPath& path : paths) order.push_back(path.index);
  EXPECT_EQ(order, (std::vector<int32_t>{3, 1, 0, 2}));
}

}  // namespace
}  // namespace skein
