#include "sched/prefix/prefix_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/random.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class PrefixWatchTest : public ::testing::Test {
 protected:
  Sequence* Arrive(const std::vector<TokenId>& tokens, uint64_t group = 0) {
    auto request = std::make_unique<RequestRecord>();
    request->arrival = requests_.size();
    request->request.group.id = group;
    auto sequence = std::make_unique<Sequence>(request.get(), 0, PrefixScope{});
    sequence->tokens = tokens;
    sequence->blocks.Hash(tokens);
    request->sequences.push_back(std::move(sequence));
    requests_.push_back(std::move(request));
    Sequence* added = requests_.back()->sequences.front().get();
    watch_.Insert(added, blocks_);
    return added;
  }

  // Puts the full blocks of `tokens` into the cache.
  void Cache(const std::vector<TokenId>& tokens) {
    SequenceBlocks sequence{PrefixScope{}};
    sequence.Hash(tokens);
    const auto num_tokens = static_cast<int32_t>(tokens.size());
    ASSERT_GE(sequence.Attach(&blocks_, tokens, num_tokens - 1, {BlocksFor(num_tokens)}, 0), 0);
    sequence.Publish(&blocks_, tokens, std::ssize(tokens));
    sequence.Release(&blocks_);
    moved_.clear();
    watch_.Follow(blocks_, [this](Sequence* moved, int32_t num_cached) {
      EXPECT_EQ(num_cached, NumCachedBlocks(*moved, blocks_));
      moved_.push_back(moved);
    });
    blocks_.ForgetChanges();
    watch_.CheckIntegrity(blocks_);
  }

  std::vector<Sequence*> PeersOf(const Sequence* sequence) {
    std::vector<Sequence*> peers;
    watch_.Find(*sequence, 100, &peers);
    return peers;
  }

  BlockManager blocks_{10, true};
  PrefixWatch watch_;
  std::vector<std::unique_ptr<RequestRecord>> requests_;
  std::vector<Sequence*> moved_;  // changed by the last call of Follow
};

std::vector<TokenId> Blocks(const std::vector<TokenId>& fill) {
  std::vector<TokenId> tokens;
  for (const TokenId token : fill) tokens.insert(tokens.end(), kBlockTokens, token);
  tokens.push_back(0);
  return tokens;
}

TEST_F(PrefixWatchTest, FollowsTheCache) {
  Sequence* a = Arrive(Blocks({1, 2, 3}));
  Sequence* b = Arrive(Blocks({1, 2, 4}));
  Sequence* c = Arrive(Blocks({1, 5}));
  EXPECT_THAT(PeersOf(a), ElementsAre(b, c));
  Cache(Blocks({1}));
  EXPECT_THAT(PeersOf(a), ElementsAre(b));
  EXPECT_THAT(PeersOf(c), IsEmpty());
  Cache(Blocks({1, 2}));
  EXPECT_THAT(PeersOf(a), IsEmpty());
  Sequence* d = Arrive(Blocks({1, 2, 3, 6}));
  EXPECT_THAT(PeersOf(a), ElementsAre(d));
  Cache(Blocks({10, 11, 12, 13, 14, 15, 16, 17, 18}));  // evicts block 2, then block 1
  EXPECT_THAT(PeersOf(a), ElementsAre(b, c, d));
  watch_.Erase(b);
  watch_.Erase(b);
  EXPECT_THAT(PeersOf(a), ElementsAre(c, d));
}

TEST_F(PrefixWatchTest, GroupsNeedNoFullBlock) {
  Sequence* a = Arrive({1, 2, 3}, 5);
  Arrive({1, 2, 3}, 6);
  Sequence* b = Arrive({1, 2, 4}, 5);
  EXPECT_THAT(PeersOf(a), ElementsAre(b));
}

TEST_F(PrefixWatchTest, TellsThoseWhomAChangeConcerns) {
  Sequence* a = Arrive(Blocks({1, 2, 3}));
  Sequence* b = Arrive(Blocks({1, 5}));
  Sequence* c = Arrive(Blocks({7, 8}));
  Cache(Blocks({1, 2}));  // two new blocks cause one call for each sequence
  EXPECT_THAT(moved_, UnorderedElementsAre(a, b));
  Cache(Blocks({1, 2, 3, 4}));
  EXPECT_THAT(moved_, ElementsAre(a));
  Cache(Blocks({20, 21, 22, 23, 24, 25}));  // evicts 4, not 3: block 4 is no sequence's deepest
  EXPECT_THAT(moved_, IsEmpty());
  Cache(Blocks({30}));  // evicts 3
  EXPECT_THAT(moved_, ElementsAre(a));
  Cache(Blocks({7, 8, 40}));
  EXPECT_THAT(moved_, UnorderedElementsAre(a, b, c));
}

TEST_F(PrefixWatchTest, RandomChanges) {
  Random random(3);
  for (int round = 0; round < 2000; ++round) {
    std::vector<TokenId> fill;
    const int64_t length = random.Between(1, 4);
    while (std::ssize(fill) < length) fill.push_back(static_cast<TokenId>(random.Between(1, 2)));
    if (random.OneIn(2)) {
      Cache(Blocks(fill));
    } else if (requests_.size() < 60) {
      Arrive(Blocks(fill), random.Between(0, 3));
    } else {
      watch_.Erase(requests_[random.Between(0, 59)]->sequences.front().get());
    }
  }
  watch_.CheckIntegrity(blocks_);
}

}  // namespace
}  // namespace skein
