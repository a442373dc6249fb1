#pragma once

#include <cstdint>
#include <span>

namespace skein {

// A waiting request as order dfs-weight sees it: the hashes of its cached blocks. Each hash covers
// all tokens up to the end of its block.
struct CachedPath {
  std::span<const uint64_t> hashes;
  uint64_t arrival = 0;
  int32_t index = 0;  // the caller's
  int64_t rank = 0;   // set by RankDepthFirst
};

// Ranks requests as SGLang's DFS-weight does: depth first over the tree of cached blocks. The
// branch with the most requests goes first; ties go to the branch with the earliest request. The
// requests of a node follow those of its branches, with equal ranks. The same as DfsWeightOrder
// (bench/sched/radix_orders.h) over full blocks, without comparing tokens. Reorders `paths`.
// O(requests * log(blocks)) for each level at which branches part.
void RankDepthFirst(std::span<CachedPath> paths);

}  // namespace skein
