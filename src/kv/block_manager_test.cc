#include "kv/block_manager.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"

namespace skein {
namespace {

// A sequence, as the scheduler keeps it: attaches cached blocks, computes the other blocks,
// publishes them.
struct Holder {
  std::vector<int32_t> tokens;
  PrefixHashes hashes;
  std::vector<BlockId> blocks;
  int32_t num_cached = 0;
};

std::optional<Holder> Start(BlockManager* manager, std::vector<int32_t> tokens) {
  Holder holder;
  holder.tokens = std::move(tokens);
  holder.hashes.Extend(holder.tokens);
  const BlockManager::Prefix prefix =
      manager->FindPrefix(holder.hashes, holder.tokens, holder.hashes.num_blocks(), &holder.blocks);
  EXPECT_EQ(manager->NumPresent(holder.hashes, holder.hashes.num_blocks()), prefix.num_blocks);
  const int32_t need = BlocksFor(std::ssize(holder.tokens)) - prefix.num_blocks;
  if (need > manager->num_available() - prefix.num_unreferenced) return std::nullopt;
  for (const BlockId block : holder.blocks) manager->Ref(block);
  for (int32_t i = 0; i < need; ++i) holder.blocks.push_back(manager->Allocate());
  holder.num_cached = prefix.num_blocks;
  return holder;
}

void PublishAll(BlockManager* manager, Holder* holder) {
  if (!manager->prefix_caching()) return;
  for (int32_t i = holder->num_cached; i < holder->hashes.num_blocks(); ++i) {
    ASSERT_TRUE(manager->Publish(holder->hashes, holder->tokens, i, holder->blocks));
  }
}

TEST(BlockManager, FindsWhatWasPublished) {
  BlockManager manager(8, true);
  auto first = Start(&manager, std::vector<int32_t>(70, 3));
  EXPECT_EQ(first->num_cached, 0);
  PublishAll(&manager, &*first);
  manager.Release(first->blocks);
  EXPECT_EQ(manager.num_referenced(), 0);
  EXPECT_EQ(manager.num_cached(), 2);  // the partial last block is free
  auto second = Start(&manager, std::vector<int32_t>(96, 3));
  EXPECT_EQ(second->num_cached, 2);
  EXPECT_EQ(second->blocks[0], first->blocks[0]);
}

TEST(BlockManager, PublishingTwiceKeepsOne) {
  BlockManager manager(8, true);
  auto first = Start(&manager, std::vector<int32_t>(64, 3));
  auto second = Start(&manager, std::vector<int32_t>(64, 3));
  PublishAll(&manager, &*first);
  PublishAll(&manager, &*second);
  EXPECT_EQ(first->blocks, second->blocks);
  EXPECT_EQ(manager.num_referenced(), 2);
  manager.CheckIntegrity();
}

// Notes each call: +own<parent for a stored block, -own for a removed block. Blocks are named by
// their token: in this test, each block holds one token 32 times.
class Heard final : public BlockListener {
 public:
  void OnStored(const PrefixKey& key, std::optional<uint64_t> parent_hash) override {
    ASSERT_EQ(key.tokens.size(), size_t{kBlockTokens});
    names_[key.hash] = std::to_string(key.tokens.front());
    text += " +" + names_[key.hash];
    if (parent_hash) text += "<" + names_.at(*parent_hash);
  }
  void OnRemoved(uint64_t hash) override { text += " -" + names_.at(hash); }

  std::string text;

 private:
  std::map<uint64_t, std::string> names_;
};

// Makes blocks of 32 tokens; each block repeats one of `tokens`.
std::vector<int32_t> BlocksOf(const std::vector<int32_t>& tokens) {
  std::vector<int32_t> all;
  for (const int32_t token : tokens) all.insert(all.end(), kBlockTokens, token);
  return all;
}

TEST(BlockManager, ListenersHearWhatIsStoredAndRemoved) {
  BlockManager manager(4, true);
  Heard heard;
  manager.set_listener(&heard);
  auto first = Start(&manager, BlocksOf({1, 2}));
  PublishAll(&manager, &*first);
  auto second = Start(&manager, BlocksOf({1, 3}));
  PublishAll(&manager, &*second);
  EXPECT_EQ(heard.text, " +1 +2<1 +3<1");
  manager.Release(first->blocks);
  manager.Release(second->blocks);
  ASSERT_TRUE(Start(&manager, BlocksOf({7, 8, 9})));
  EXPECT_EQ(heard.text, " +1 +2<1 +3<1 -2 -3");
  ASSERT_TRUE(Start(&manager, BlocksOf({4})));
  EXPECT_EQ(heard.text, " +1 +2<1 +3<1 -2 -3 -1");
}

TEST(BlockManager, RunsAreTheTreeOfPrefixes) {
  BlockManager manager(16, true);
  EXPECT_TRUE(manager.Runs().empty());
  auto first = Start(&manager, BlocksOf({1, 2, 3, 4}));
  PublishAll(&manager, &*first);
  auto second = Start(&manager, BlocksOf({1, 2, 5}));
  PublishAll(&manager, &*second);
  auto third = Start(&manager, BlocksOf({6}));
  PublishAll(&manager, &*third);
  manager.Release(third->blocks);
  const auto text = [&] {
    std::string runs;
    for (const BlockManager::Run& run : manager.Runs()) {
      runs += " " + std::to_string(run.parent) + ":" + std::to_string(run.num_blocks) + "x" +
              std::to_string(run.num_sequences);
    }
    return runs;
  };
  EXPECT_EQ(text(), " -1:2x2 0:2x1 0:1x1 -1:1x0");
  // The part of a chain that a sequence still references becomes a separate run.
  manager.Release(first->blocks);
  EXPECT_EQ(text(), " -1:2x1 0:1x1 0:2x0 -1:1x0");
  manager.Release(second->blocks);
  EXPECT_EQ(text(), " -1:2x0 0:2x0 0:1x0 -1:1x0");
}

TEST(BlockManager, EvictsTheLastBlockOfTheOldestSequenceFirst) {
  BlockManager manager(4, true);
  auto old_one = Start(&manager, std::vector<int32_t>(64, 1));
  auto new_one = Start(&manager, std::vector<int32_t>(64, 2));
  PublishAll(&manager, &*old_one);
  PublishAll(&manager, &*new_one);
  manager.Release(old_one->blocks);
  manager.Release(new_one->blocks);
  EXPECT_EQ(manager.Allocate(), old_one->blocks[1]);
  EXPECT_EQ(manager.Allocate(), old_one->blocks[0]);
  EXPECT_EQ(manager.Allocate(), new_one->blocks[1]);
  manager.CheckIntegrity();
  std::vector<BlockId> found;
  EXPECT_EQ(manager.FindPrefix(new_one->hashes, new_one->tokens, 2, &found).num_blocks, 1);
}

// Random sequences over few tokens (with long shared prefixes) come and go. A shadow memory records
// the content computed into each block, so a hit on wrong content is noticed.
TEST(BlockManager, HitsHoldTheRightContentUnderEviction) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    BlockManager manager(static_cast<int32_t>(random.Between(4, 20)), !random.OneIn(8));
    std::vector<Holder> running;
    std::map<BlockId, std::vector<int32_t>> shadow;  // all tokens up to the block's end
    for (int step = 0; step < 200; ++step) {
      if (running.empty() || random.OneIn(2)) {
        std::vector<int32_t> tokens(random.Between(1, 4 * kBlockTokens));
        for (size_t i = 0; i < tokens.size(); ++i) {
          tokens[i] = i % kBlockTokens == 0 ? static_cast<int32_t>(random.Between(0, 1)) : 0;
        }
        auto holder = Start(&manager, tokens);
        if (!holder) continue;
        for (int32_t i = 0; i < std::ssize(holder->blocks); ++i) {
          const size_t end = std::min<size_t>(tokens.size(), size_t{kBlockTokens} * (i + 1));
          const std::vector<int32_t> content(tokens.begin(), tokens.begin() + end);
          if (i < holder->num_cached) {
            ASSERT_EQ(shadow[holder->blocks[i]], content);
          } else {
            ASSERT_EQ(manager.ref_count(holder->blocks[i]), 1);
            shadow[holder->blocks[i]] = content;
          }
        }
        PublishAll(&manager, &*holder);
        running.push_back(std::move(*holder));
      } else {
        const size_t victim = random.Between(0, std::ssize(running) - 1);
        manager.Release(running[victim].blocks);
        running.erase(running.begin() + victim);
      }
      manager.CheckIntegrity();
    }
    for (const Holder& holder : running) manager.Release(holder.blocks);
    EXPECT_EQ(manager.num_referenced(), 0);
    EXPECT_EQ(manager.num_available(), manager.num_blocks());
  }
}

}  // namespace
}  // namespace skein
