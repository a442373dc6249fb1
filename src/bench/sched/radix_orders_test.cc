#include "bench/sched/radix_orders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace skein {
namespace {

using Prompt = std::vector<int32_t>;
using ::testing::ElementsAre;

std::vector<std::span<const int32_t>> SpansOf(const std::vector<Prompt>& prompts) {
  return {prompts.begin(), prompts.end()};
}

TEST(RadixTree, MatchesTheLongestPrefixOfAnySequence) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    const auto some_tokens = [&] {
      Prompt tokens(random.Between(1, 20));
      for (int32_t& token : tokens) token = static_cast<int32_t>(random.OneIn(3));
      if (seed % 2 == 0) tokens.insert(tokens.begin(), 600, 1);  // also long common prefixes
      return tokens;
    };
    RadixTree tree;
    std::vector<Prompt> sequences;
    for (int i = 0; i < 30; ++i) {
      sequences.push_back(some_tokens());
      const RadixTree::Node* node = tree.Insert(sequences.back());
      EXPECT_EQ(node->depth, std::ssize(sequences.back()));
      const Prompt probe = some_tokens();
      int64_t longest = 0;
      for (const Prompt& sequence : sequences) {
        const auto end =
            std::mismatch(probe.begin(), probe.end(), sequence.begin(), sequence.end()).first;
        longest = std::max(longest, end - probe.begin());
      }
      const RadixTree::Found found = tree.Match(probe);
      EXPECT_EQ(found.num_tokens, longest);
      EXPECT_LE(found.node->depth, found.num_tokens);
    }
  }
}

TEST(RadixOrders, LongestPrefixFirst) {
  RadixTree cached;
  cached.Insert(Prompt{1, 2, 3, 4});
  cached.Insert(Prompt{1, 2, 9});
  const std::vector<Prompt> prompts = {{7}, {1, 2, 5}, {1, 2, 3, 4, 5}, {1, 2, 9}, {1, 2, 3, 8}};
  EXPECT_THAT(LpmOrder(cached, SpansOf(prompts)), ElementsAre(2, 3, 4, 1, 0));
}

TEST(RadixOrders, DepthFirstByWeight) {
  RadixTree cached;
  cached.Insert(Prompt{1, 1});
  cached.Insert(Prompt{2, 2, 3});
  cached.Insert(Prompt{2, 2, 4});
  // There are two requests below {1, 1}, and three below {2, 2}: one at {2, 2, 7}, two below {2, 2,
  // 4}.
  const std::vector<Prompt> prompts = {{1, 1, 5}, {2, 2, 7}, {2, 2, 4, 1},
                                       {9},       {1, 1, 6}, {2, 2, 4, 2}};
  EXPECT_THAT(DfsWeightOrder(cached, SpansOf(prompts)), ElementsAre(2, 5, 1, 0, 4, 3));
}

}  // namespace
}  // namespace skein
