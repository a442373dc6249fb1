#include "cuda/executor/tiles/prefix_finder.h"

#include <algorithm>
#include <numeric>

#include "base/ceil_div.h"
#include "cuda/executor/operators/operator_slices.h"
#include "cuda/kernels/launches.h"

namespace skein::cuda {
namespace {

// The time of a block's step on an H200 (docs/gpu.md), for 32 KB of keys and values and for 64
// rows.
constexpr double kStepUs = 0.75, kStepRowsUs = 0.92;
constexpr double kStepBytes = 32 << 10, kStepRows = 64;
constexpr int64_t kStepsOfSegment = kKeysPerSegment / kKeysPerStep;

// The time of a launch: of all blocks together, or of the longest one.
struct WalkTime {
  void Add(int64_t blocks, int64_t num_steps, double step_us) {
    const auto longest_us = static_cast<double>(std::min(num_steps, kStepsOfSegment)) * step_us;
    all_us += static_cast<double>(blocks * num_steps) * step_us;
    alone_us = std::max(alone_us, longest_us);
  }
  double us() const { return std::max(alone_us, all_us / static_cast<double>(kProcessors)); }

  double all_us = 0, alone_us = 0;
};

int64_t StepsOf(const PrefixRun& run) {
  return CeilDiv(run.begin + 1, kKeysPerStep);  // few tokens behind it see more
}

}  // namespace

int32_t PrefixFinder::SharedKeys(int32_t a, int32_t b) const {
  const PrefixRun &x = runs_[a], &y = runs_[b];
  const int32_t most = std::min(x.begin, y.begin) / kKeysPerStep * kKeysPerStep;
  const auto first = x.table.begin();
  const auto end = first + most / kKvBlockTokens;
  const auto blocks = std::mismatch(first, end, y.table.begin()).first - first;
  return static_cast<int32_t>(blocks) * kKvBlockTokens / kKeysPerStep * kKeysPerStep;
}

void PrefixFinder::Assign(std::span<const PrefixRun> runs, const PrefixWalks& walks) {
  runs_ = runs;
  walks_ = walks;
  groups_.clear();
  shared_keys_.clear();
  sorted_.resize(runs.size());
  std::iota(sorted_.begin(), sorted_.end(), 0);
  // Runs without a whole step in front of them share nothing.
  std::erase_if(sorted_, [&](int32_t run) { return runs[run].begin < kKeysPerStep; });
  std::sort(sorted_.begin(), sorted_.end(), [&](int32_t a, int32_t b) {
    const auto &x = runs[a].table, &y = runs[b].table;
    const auto [p, q] = std::mismatch(x.begin(), x.end(), y.begin(), y.end());
    if (p == x.end() || q == y.end()) {
      return x.size() != y.size() ? x.size() < y.size() : a < b;
    }
    return *p < *q;
  });
  for (size_t i = 1; i < sorted_.size(); ++i) {
    shared_keys_.push_back(SharedKeys(sorted_[i - 1], sorted_[i]));
  }
  AddGroups(0, static_cast<int32_t>(sorted_.size()));
}

int64_t PrefixFinder::TilesOf(int32_t begin, int32_t end) const {
  int64_t tiles = 0;
  for (int32_t i = begin; i < end; ++i) {
    tiles += CeilDiv(runs_[sorted_[i]].num_rows, runs_[sorted_[i]].tile_rows);
  }
  return tiles;
}

int32_t PrefixFinder::TilesOfGroup(int32_t begin, int32_t end) const {
  int32_t rows = 0;
  for (int32_t i = begin; i < end; ++i) rows += runs_[sorted_[i]].num_rows;
  return CeilDiv(rows, walks_.tile_rows);
}

// The runs are one group, or are cut where neighbours share the least.
int64_t PrefixFinder::AddGroups(int32_t begin, int32_t end) {
  if (end - begin < 2) return 0;
  const auto first = shared_keys_.begin() + begin, last = shared_keys_.begin() + end - 1;
  const int32_t least = *std::min_element(first, last);
  const size_t num_groups = groups_.size();
  int64_t saved_by_parts = 0;
  for (int32_t part = begin, i = begin; i < end; ++i) {
    if (i + 1 < end && shared_keys_[i] > least) continue;
    saved_by_parts += AddGroups(part, i + 1);
    part = i + 1;
  }
  const int64_t tiles = TilesOf(begin, end) - TilesOfGroup(begin, end);
  const int64_t saved = tiles * (least / kKeysPerStep);
  if (saved <= saved_by_parts) return saved_by_parts;
  groups_.resize(num_groups);
  groups_.push_back({begin, end - begin, least});
  return saved;
}

double PrefixFinder::SavedUs() const {
  const int64_t heads = walks_.num_kv_heads;
  const auto step_us = [&](int32_t tile_rows) {
    return kStepUs * walks_.step_bytes / kStepBytes + kStepRowsUs * tile_rows / kStepRows;
  };
  std::vector<int32_t> keys(runs_.size());
  WalkTime alone, shared, behind;
  for (const PrefixGroup& group : groups_) {
    const int32_t end = group.first + group.count;
    shared.Add(heads * TilesOfGroup(group.first, end), group.num_keys / kKeysPerStep,
               step_us(walks_.tile_rows));
    for (int32_t i = group.first; i < end; ++i) keys[sorted_[i]] = group.num_keys;
  }
  for (size_t i = 0; i < runs_.size(); ++i) {
    const PrefixRun& run = runs_[i];
    const int64_t blocks = heads * CeilDiv(run.num_rows, run.tile_rows);
    alone.Add(blocks, StepsOf(run), step_us(run.tile_rows));
    behind.Add(blocks, StepsOf(run) - keys[i] / kKeysPerStep, step_us(run.tile_rows));
  }
  const double launch_us = OperatorSlices::BytesUs(0);
  return alone.us() - shared.us() - behind.us() - launch_us;
}

}  // namespace skein::cuda
