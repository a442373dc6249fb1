#include "sched/order/depth_first.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "kv/block_pool.h"
#include "kv/prefix_hashes.h"
#include "sched/order/radix_orders.h"

namespace skein {
namespace {

using Tokens = std::vector<int32_t>;

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

// Prompts of full blocks, some of them cached. The reference is the order over the radix tree of
// the tokens.
TEST(RankDepthFirst, IsTheOrderOverTheRadixTree) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const auto some_blocks = [&] {
      Tokens tokens;
      for (int64_t i = random.Between(0, 6); i > 0; --i) {
        tokens.insert(tokens.end(), kBlockTokens, static_cast<int32_t>(random.Between(0, 2)));
      }
      return tokens;
    };
    RadixTree cached;
    for (int64_t i = random.Between(1, 8); i > 0; --i) cached.Insert(some_blocks());
    std::vector<Tokens> prompts;
    std::vector<PrefixHashes> hashes;
    for (int i = 0; i < 40; ++i) {
      prompts.push_back(some_blocks());
      hashes.emplace_back().Extend(prompts.back());
    }
    // Prompts of the reference end in nodes only, so an edge is cut at the end of a prompt inside
    // it.
    for (const Tokens& prompt : prompts) {
      const int32_t length = cached.Match(prompt).num_tokens;
      cached.Insert(std::span(prompt).first(static_cast<size_t>(length)));
    }
    std::vector<CachedPath> paths;
    for (int32_t i = 0; i < std::ssize(prompts); ++i) {
      const int32_t num_blocks = cached.Match(prompts[i]).num_tokens / kBlockTokens;
      paths.push_back({.hashes = hashes[i].blocks().first(static_cast<size_t>(num_blocks)),
                       .arrival = static_cast<uint64_t>(i),
                       .index = i});
    }
    RankDepthFirst(paths);
    std::ranges::sort(paths, {}, [](const CachedPath& p) { return std::pair(p.rank, p.arrival); });
    std::vector<int32_t> order;
    for (const CachedPath& path : paths) order.push_back(path.index);
    const std::vector<std::span<const int32_t>> spans(prompts.begin(), prompts.end());
    EXPECT_EQ(order, DfsWeightOrder(cached, spans));
  }
}

}  // namespace
}  // namespace skein
