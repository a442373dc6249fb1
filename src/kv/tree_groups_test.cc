#include "kv/tree_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <set>
#include <vector>

#include "base/random.h"

namespace skein {
namespace {

using ::testing::UnorderedElementsAre;
using Handle = ChunkedHashTree::Handle;

class TreeGroupsTest : public ::testing::Test {
 protected:
  Handle Insert(std::vector<uint64_t> hashes) {
    vectors_.push_back(std::move(hashes));
    const Handle handle = tree_.Insert(ViewOf(vectors_.back()), {.arrival = num_arrivals_++});
    vector_of_[handle] = &vectors_.back();
    return handle;
  }
  // A request of `group`: `depth` shared chunks, then one chunk of its own.
  Handle OfGroup(uint64_t group, int depth) {
    std::vector<uint64_t> hashes;
    for (int i = 0; i < depth; ++i) hashes.push_back(1000 * group + i);
    hashes.push_back(1'000'000 + num_arrivals_);
    return Insert(std::move(hashes));
  }

  std::list<std::vector<uint64_t>> vectors_;
  std::map<Handle, const std::vector<uint64_t>*> vector_of_;
  uint64_t num_arrivals_ = 0;
  ChunkedHashTree tree_{ChunkedHashTree::Choice::kLeastPrefixLoss};
  TreeGroups groups_{&tree_};
};

TEST_F(TreeGroupsTest, RequestsOfOnePrefixAreAGroup) {
  std::vector<Handle> first, second;
  for (int i = 0; i < 3; ++i) first.push_back(OfGroup(1, 10));
  for (int i = 0; i < 2; ++i) second.push_back(OfGroup(2, 20));
  const Handle alone = OfGroup(3, 5);
  tree_.Add(first[0]);
  std::map<int32_t, TreeGroup> by_depth;
  for (const TreeGroup& group : groups_.List()) by_depth[group.depth] = group;
  ASSERT_EQ(by_depth.size(), 3u);
  EXPECT_EQ(by_depth[10].num_waiting, 2);
  EXPECT_EQ(by_depth[10].num_active, 1);
  EXPECT_EQ(by_depth[10].first_arrival, 1u);
  EXPECT_EQ(by_depth[10].first_waiting, first[1]);
  EXPECT_EQ(by_depth[20].num_waiting, 2);
  EXPECT_EQ(by_depth[6].num_waiting, 1);  // a request alone: the whole vector
  std::vector<Handle> requests;
  groups_.AppendRequests(by_depth[10], &requests);
  EXPECT_THAT(requests, UnorderedElementsAre(first[0], first[1], first[2]));
  EXPECT_TRUE(std::ranges::count(first, groups_.PeerOf(first[1]).value()) == 1);
  EXPECT_EQ(groups_.PeerOf(second[0]), second[1]);
  EXPECT_EQ(groups_.PeerOf(alone), std::nullopt);
}

TEST_F(TreeGroupsTest, AUnionCountsCommonLevelsOnce) {
  for (int i = 0; i < 2; ++i) Insert({1, 2, 3, 4, 100u + i});
  for (int i = 0; i < 2; ++i) Insert({1, 2, 5, 6, 7, 200u + i});
  const auto groups = groups_.List();
  ASSERT_EQ(groups.size(), 2u);
  groups_.BeginUnion();
  EXPECT_EQ(groups_.AddToUnion(groups[0]) + groups_.AddToUnion(groups[1]), 4 + 5 - 2);
  groups_.BeginUnion();
  EXPECT_EQ(groups_.AddToUnion(groups[1]), groups[1].depth);
}

// Every request is in one group, and has the group's prefix. The working set is that of the
// definition.
TEST_F(TreeGroupsTest, ArePartsOfTheTree) {
  Random random(7);
  std::vector<Handle> waiting, active;
  for (int turn = 0; turn < 2000; ++turn) {
    if (random.OneIn(2) || waiting.empty()) {
      std::vector<uint64_t> hashes;
      uint64_t path = 1;
      for (int64_t i = random.Between(1, 6); i > 0; --i) {
        path = 3 * path + static_cast<uint64_t>(random.Between(0, 2));
        hashes.push_back(path);
      }
      waiting.push_back(Insert(std::move(hashes)));
    } else if (random.OneIn(2)) {
      tree_.Add(waiting.back());
      active.push_back(waiting.back());
      waiting.pop_back();
    } else if (!active.empty()) {
      const size_t i = random.Between(0, std::ssize(active) - 1);
      tree_.Finish(active[i]);
      active.erase(active.begin() + static_cast<ptrdiff_t>(i));
    }
    tree_.CheckIntegrity();
    if (turn % 10 != 0) continue;
    std::vector<Handle> all;
    for (const TreeGroup& group :
         std::vector<TreeGroup>(groups_.List().begin(), groups_.List().end())) {
      const size_t before = all.size();
      groups_.AppendRequests(group, &all);
      EXPECT_EQ(all.size() - before, static_cast<size_t>(group.num_waiting + group.num_active));
      for (size_t i = before; i < all.size(); ++i) {
        for (int32_t level = 0; level < group.depth; ++level) {
          EXPECT_EQ((*vector_of_[all[i]])[level], (*vector_of_[all[before]])[level]);
        }
      }
    }
    EXPECT_EQ(all.size(), waiting.size() + active.size());
    EXPECT_EQ(std::set<Handle>(all.begin(), all.end()).size(), all.size());
    std::set<std::pair<size_t, uint64_t>> working_set;
    size_t num_levels = 0;
    for (const Handle handle : active) {
      num_levels += vector_of_[handle]->size();
      for (size_t level = 0; level < vector_of_[handle]->size(); ++level) {
        working_set.insert({level, (*vector_of_[handle])[level]});
      }
    }
    EXPECT_EQ(groups_.working_set(), std::ssize(working_set));
    EXPECT_EQ(groups_.active_levels(), static_cast<int64_t>(num_levels));
  }
}

}  // namespace
}  // namespace skein
