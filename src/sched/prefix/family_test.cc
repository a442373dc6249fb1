#include "sched/prefix/family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Tokens = std::vector<TokenId>;

// `shared` copies of token 1, then `own` tokens that count up from `first`.
Tokens Prompt(int32_t shared, int32_t own, TokenId first) {
  Tokens tokens(shared, 1);
  for (int32_t i = 0; i < own; ++i) tokens.push_back(first + i);
  return tokens;
}

Family Choose(const Tokens& head, const std::vector<Tokens>& others, int32_t num_cached = 0) {
  std::vector<FamilyCandidate> candidates;
  for (const Tokens& tokens : others) candidates.push_back({.tokens = tokens});
  return ChooseFamily(head, candidates, num_cached);
}

TEST(Family, SharedLengthLeavesEachATokenOfItsOwn) {
  EXPECT_EQ(SharedLength(Tokens{}, Tokens{1}), 0);
  EXPECT_EQ(SharedLength(Tokens{1}, Tokens{1}), 0);
  EXPECT_EQ(SharedLength(Tokens{1, 2, 3}, Tokens{1, 2, 3}), 2);
  EXPECT_EQ(SharedLength(Tokens{1, 2, 3}, Tokens{1, 2}), 1);
  EXPECT_EQ(SharedLength(Tokens{1, 2, 3, 4}, Tokens{1, 3, 3, 4}), 1);
}

TEST(Family, SharesToTheToken) {
  const Family family = Choose(Prompt(77, 5, 10), {Prompt(77, 9, 20), Prompt(77, 1, 40)});
  EXPECT_EQ(family.prefix_len, 77);
  EXPECT_THAT(family.members, ElementsAre(0, 1));
}

TEST(Family, NothingToGain) {
  EXPECT_EQ(Choose(Prompt(100, 5, 10), {}).prefix_len, 0);
  EXPECT_EQ(Choose(Prompt(100, 5, 10), {Prompt(0, 50, 20)}).prefix_len, 0);
  EXPECT_EQ(Choose(Prompt(96, 5, 10), {Prompt(96, 5, 20)}, 96).prefix_len, 0);
  EXPECT_EQ(Choose(Prompt(100, 5, 10), {Prompt(100, 5, 20)}, 96).prefix_len, 0);  // 4 tokens saved
}

TEST(Family, LeavesOutWhoWouldCostMoreThanHeBrings) {
  const std::vector<Tokens> others = {Prompt(200, 5, 20), Prompt(40, 5, 40), Prompt(200, 5, 60)};
  const Family family = Choose(Prompt(200, 5, 10), others);
  EXPECT_EQ(family.prefix_len, 200);
  EXPECT_THAT(family.members, ElementsAre(0, 2));
}

// Three requests share 500 tokens. The head shares only the first 64 of these tokens.
TEST(Family, DoesNotBreakUpAnotherFamily) {
  std::vector<Tokens> others;
  for (int32_t i = 0; i < 3; ++i) {
    others.push_back(Prompt(64, 436, 1000));
    others.back().push_back(10 + i);
  }
  EXPECT_THAT(Choose(Prompt(64, 5, 10), others).members, IsEmpty());
  others.push_back(Prompt(64, 7, 50));
  EXPECT_THAT(Choose(Prompt(64, 5, 10), others).members, ElementsAre(3));
  std::vector<FamilyCandidate> candidates = {{.tokens = others[3], .other_prefix_len = 66}};
  EXPECT_THAT(ChooseFamily(Prompt(64, 5, 10), candidates, 0).members, IsEmpty());
}

// Compares with all subsets of requests that diverge at random tokens and share no tokens behind
// them.
TEST(Family, SavesAsMuchAsAnyChoice) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    const Tokens head = Prompt(100, 1, 5000);
    std::vector<Tokens> others;
    const auto num_others = static_cast<int32_t>(random.Between(0, 6));
    for (int32_t i = 0; i < num_others; ++i) {
      others.push_back(Prompt(static_cast<int32_t>(random.Between(0, 100)), 20, 100 + 100 * i));
    }
    const auto num_cached = static_cast<int32_t>(random.Between(0, 60));
    int64_t best = 0;
    for (uint32_t subset = 1; subset < 1u << num_others; ++subset) {
      int32_t prefix_len = 100;
      int64_t size = 0;
      for (int32_t i = 0; i < num_others; ++i) {
        if ((subset >> i & 1) == 0) continue;
        ++size;
        prefix_len = std::min(prefix_len, SharedLength(head, others[i]));
      }
      best = std::max(best, size * (prefix_len - num_cached));
    }
    const Family family = Choose(head, others, num_cached);
    const int64_t saved = std::ssize(family.members) * (family.prefix_len - num_cached);
    if (best < 16) {
      EXPECT_THAT(family.members, IsEmpty());
    } else {
      EXPECT_EQ(saved, best);
    }
  }
}

}  // namespace
}  // namespace skein
