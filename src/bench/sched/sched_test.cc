#include "bench/sched/sched.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace skein {
namespace {

constexpr TreeBenchOptions kSmall = {.num_requests = 100,
                                     .num_tokens = 300,
                                     .num_groups = 3,
                                     .num_suffix_tokens = 10,
                                     .batch_size = 20,
                                     .num_turns = 100};

// Other programs read these members.
TEST(BenchSched, TreeHasItsMembers) {
  const nlohmann::ordered_json tree = BenchTree(kSmall);
  EXPECT_EQ(tree["requests"], 100);
  EXPECT_EQ(tree["tokens"], 300);
  EXPECT_EQ(tree["nodes"], 104);  // the root, three prefixes, and a suffix for each request
  for (const char* name : {"hash_ns", "insert_ns", "add_ns", "finish_ns"}) {
    EXPECT_GT(tree.at(name).get<double>(), 0) << name;
  }
  EXPECT_GE(tree.at("find_best_ns").get<double>(), 0);
}

TEST(BenchSched, ChunkSizesOfBothConstructions) {
  const nlohmann::ordered_json rows = BenchChunkSizes(kSmall);
  std::map<std::string, std::set<int>> sizes;
  for (const auto& row : rows) sizes[row["construction"]].insert(row["chunk_tokens"].get<int>());
  const std::set<int> all = {1, 2, 4, 8, 16, 32, 64, 128, 256};
  EXPECT_EQ(sizes, (std::map<std::string, std::set<int>>{{"chained", all}, {"streaming", all}}));
}

TEST(BenchSched, OverheadOfEachPolicy) {
  const nlohmann::ordered_json rows = BenchOverhead(20, 5);
  EXPECT_EQ(rows.size(), 20u);
  std::map<std::string, std::set<int>> prefixes;
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("waiting"), 20);
    EXPECT_GT(row.at("us_per_round").get<double>(), 0) << row.dump();
    prefixes[row.at("policy")].insert(row.at("prefix_tokens").get<int>());
  }
  const std::set<int> all = {1000, 2000, 5000, 10'000, 20'000};
  EXPECT_EQ(prefixes, (std::map<std::string, std::set<int>>{{"lpm", all},
                                                            {"dfs-weight", all},
                                                            {"prefix-homogeneous", all},
                                                            {"prefix-homogeneous-radix", all}}));
}

}  // namespace
}  // namespace skein
