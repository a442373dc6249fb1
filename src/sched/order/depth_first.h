#pragma once

#include <cstdint>
#include <span>

namespace skein {

// A waiting request as order dfs-weight sees it: the hashes of its cached blocks. Each hash covers
// all tokens up to the end of its block.
struct CachedPath {
  std::span<const uint64_t> hashes;
  uint64_t arrival = 0;
  int32_t index = 0;  // given by the caller
  int64_t rank = 0;   // set by RankDepthFirst
};

// Ranks requests as SGLang's DFS-weight does: depth first over the tree of cached blocks. The
// branch with the most requests goes first; ties go to the branch with the earliest request. The
// requests of a node follow those of its branches, with equal ranks. The result is that of
// DfsWeightOrder (bench/sched/radix_orders.h) over full blocks, but no tokens are compared.
// Reorders `paths`. O(requests * log(blocks)) for each level at which branches diverge.
void RankDepthFirst(std::span<CachedPath> paths);

}  // namespace skein
