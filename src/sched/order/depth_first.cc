#include "sched/order/depth_first.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace skein {
namespace {

using Paths = std::span<CachedPath>;

bool ShareBlocks(Paths paths, size_t count) {
  if (count == 0) return true;
  const uint64_t hash = paths[0].hashes[count - 1];
  return std::ranges::all_of(
      paths, [&](const CachedPath& path) { return path.hashes[count - 1] == hash; });
}

// The number of leading blocks that all paths share; at least `low`.
size_t CommonBlocks(Paths paths, size_t low) {
  size_t high = paths[0].hashes.size();
  for (const CachedPath& path : paths) high = std::min(high, path.hashes.size());
  while (low < high) {
    const size_t middle = (low + high + 1) / 2;
    if (ShareBlocks(paths, middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

void Visit(Paths paths, size_t depth, int64_t* next_rank) {
  depth = CommonBlocks(paths, depth);
  // Paths that continue, grouped by their next block, come before paths that end here.
  const auto ends = std::ranges::partition(
      paths, [&](const CachedPath& path) { return path.hashes.size() > depth; });
  const Paths deeper = paths.first(paths.size() - ends.size());
  std::ranges::sort(deeper, {}, [&](const CachedPath& path) {
    return std::pair(path.hashes[depth], path.arrival);
  });
  std::vector<Paths> branches;
  for (size_t begin = 0, end = 0; begin < deeper.size(); begin = end) {
    while (end < deeper.size() && deeper[end].hashes[depth] == deeper[begin].hashes[depth]) ++end;
    branches.push_back(deeper.subspan(begin, end - begin));
  }
  std::ranges::sort(branches, [](Paths a, Paths b) {
    return a.size() != b.size() ? a.size() > b.size() : a[0].arrival < b[0].arrival;
  });
  for (const Paths branch : branches) Visit(branch, depth + 1, next_rank);
  for (CachedPath& path : ends) path.rank = *next_rank;
  ++*next_rank;
}

}  // namespace

void RankDepthFirst(std::span<CachedPath> paths) {
  int64_t next_rank = 0;
  if (!paths.empty()) Visit(paths, 0, &next_rank);
}

}  // namespace skein
