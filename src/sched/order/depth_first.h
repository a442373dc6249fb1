#pragma once

#include <cstdint>
#include <span>

namespace skein {

// A waiting request as order dfs-weight sees it: the hashes of its blocks that are cached, each of
// which covers all tokens up to its end.
struct CachedPath {
  std::span<const uint64_t> hashes;
  uint64_t arrival = 0;
  int32_t index = 0;  // the caller's
  int64_t rank = 0;   // set by RankDepthFirst
};

// Ranks requests as SGLang's DFS-weight does: depth first over the tree of what is cached, the
// branch with the most requests first (ties: with the earliest of them); the requests of a node
// after those of its branches, with equal ranks. The same as DfsWeightOrder
// (sched/order/radix_orders.h) over whole blocks, without comparing tokens. Reorders `paths`.
// O(requests * log(blocks)) for each level at which branches part.
void RankDepthFirst(std::span<CachedPath> paths);

}  // namespace skein
