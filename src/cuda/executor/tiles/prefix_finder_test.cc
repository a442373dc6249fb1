#include "cuda/executor/tiles/prefix_finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "cuda/kernels/args.h"
#include "kernels/kv_layout.h"

namespace skein::cuda {
namespace {

constexpr PrefixWalks kWalks = {.num_kv_heads = 8, .tile_rows = 16, .step_bytes = 32 << 10};

// Decodes of four query heads for each KV head. The blocks of a run: `parts` of so many blocks
// each, by number, then blocks that no other run has.
class Runs {
 public:
  struct Part {
    int32_t number, num_blocks;
  };

  void Add(const std::vector<Part>& parts, int32_t own_tokens, int32_t num_rows = 4) {
    std::vector<int32_t>& table = tables_.emplace_back();
    for (const Part& part : parts) {
      for (int32_t i = 0; i < part.num_blocks; ++i) table.push_back(part.number * 1000 + i);
    }
    const auto begin = static_cast<int32_t>(table.size()) * kKvBlockTokens + own_tokens;
    const int32_t own_blocks = own_tokens / kKvBlockTokens + 1;
    for (int32_t i = 0; i < own_blocks; ++i) table.push_back(--next_own_block_);
    runs_.push_back({{}, begin, num_rows, kAttentionRows});
  }

  // The runs of each group, by the keys that they share.
  std::multimap<int32_t, std::vector<int32_t>> Groups() {
    for (size_t i = 0; i < runs_.size(); ++i) runs_[i].table = tables_[i];
    groups_.Assign(runs_, kWalks);
    std::multimap<int32_t, std::vector<int32_t>> found;
    for (const PrefixGroup& group : groups_.groups()) {
      const auto members = groups_.runs().subspan(group.first, group.count);
      std::vector<int32_t> sorted(members.begin(), members.end());
      std::ranges::sort(sorted);
      found.emplace(group.num_keys, sorted);
    }
    return found;
  }
  double SavedUs() const { return groups_.SavedUs(); }

 private:
  std::vector<std::vector<int32_t>> tables_;
  std::vector<PrefixRun> runs_;
  int32_t next_own_block_ = -1;
  PrefixFinder groups_;
};

using Found = std::multimap<int32_t, std::vector<int32_t>>;

TEST(PrefixFinder, RunsWithTheSameFirstBlocksAreAGroup) {
  Runs runs;
  runs.Add({{1, 4}}, 5);
  runs.Add({{2, 6}}, 0);
  runs.Add({{1, 4}}, 70);
  runs.Add({}, 200);
  runs.Add({{2, 6}}, 31);
  EXPECT_EQ(runs.Groups(), (Found{{128, {0, 2}}, {192, {1, 4}}}));
}

// Steps have two blocks. A run sees none that it has not passed.
TEST(PrefixFinder, OnlyWholeStepsThatAllSeeAreShared) {
  Runs runs;
  runs.Add({{1, 5}}, 5);
  runs.Add({{1, 5}}, 9);
  EXPECT_EQ(runs.Groups(), (Found{{128, {0, 1}}}));
  Runs one_block;
  one_block.Add({{1, 1}}, 50);
  one_block.Add({{1, 1}}, 60);
  EXPECT_EQ(one_block.Groups(), Found{});
}

// All share few keys, and two pairs share many: pairs save more. With five runs more that share the
// few keys alone, three tiles of all take the place of nine.
TEST(PrefixFinder, OfNestedPrefixesTheBestAreTaken) {
  const auto nested = [](int32_t num_more) {
    Runs runs;
    for (const int32_t pair : {2, 2, 3, 3}) runs.Add({{1, 4}, {pair, 4}}, 5);
    for (int32_t i = 0; i < num_more; ++i) runs.Add({{1, 4}}, 100);
    return runs.Groups();
  };
  EXPECT_EQ(nested(0), (Found{{256, {0, 1}}, {256, {2, 3}}}));
  EXPECT_EQ(nested(5), (Found{{128, {0, 1, 2, 3, 4, 5, 6, 7, 8}}}));
}

// Runs of whole tiles would save nothing.
TEST(PrefixFinder, FullTilesAreNotShared) {
  Runs runs;
  runs.Add({{1, 4}}, 5, 16);
  runs.Add({{1, 4}}, 5, 32);
  EXPECT_EQ(runs.Groups(), Found{});
}

// Few walks run at the same time anyway, on multiprocessors of their own.
TEST(PrefixFinder, OnlyABusyDeviceSavesTime) {
  const auto saved_us = [](int32_t num_runs, int32_t num_blocks) {
    Runs runs;
    for (int32_t i = 0; i < num_runs; ++i) runs.Add({{1, num_blocks}}, 30);
    runs.Groups();
    return runs.SavedUs();
  };
  EXPECT_LT(saved_us(4, 32), 0);
  EXPECT_LT(saved_us(64, 2), 0);
  EXPECT_GT(saved_us(64, 32), 20);
  EXPECT_GT(saved_us(256, 32), saved_us(64, 32));
}

}  // namespace
}  // namespace skein::cuda
