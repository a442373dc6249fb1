#include "kv/host_tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "kv/block_manager.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// `num_blocks` blocks of tokens. Those of the first `shared` blocks are the same for all contents.
struct HostPrompt {
  explicit HostPrompt(int32_t content, int32_t num_blocks, int32_t shared = 0,
                      PrefixScope scope = {})
      : hashes(scope) {
    for (int32_t i = 0; i < num_blocks * kBlockTokens; ++i) {
      tokens.push_back(i / kBlockTokens < shared ? 1 : content);
    }
    hashes.Extend(tokens);
  }
  HostKey Key(int32_t i) const {
    return {.hash = hashes[i],
            .parent = i == 0 ? std::nullopt : std::optional(hashes[i - 1]),
            .scope = hashes.scope(),
            .tokens = std::span(tokens).subspan(size_t{kBlockTokens} * i, kBlockTokens)};
  }

  std::vector<int32_t> tokens;
  PrefixHashes hashes;
};

TEST(HostTier, DropsTheOldestContents) {
  const HostPrompt a(2, 1), b(3, 1), c(4, 1), d(5, 1);
  HostTier host(2);
  EXPECT_TRUE(host.Save(a.Key(0)).is_new);
  EXPECT_TRUE(host.Save(b.Key(0)).is_new);
  EXPECT_FALSE(host.Save(a.Key(0)).is_new);  // it is the newest now
  const HostTier::Saved saved = host.Save(c.Key(0));
  EXPECT_TRUE(saved.is_new);
  EXPECT_EQ(saved.dropped, b.hashes[0]);
  EXPECT_EQ(host.Find(b.Key(0)), kNoSlot);
  host.Demote(host.Find(c.Key(0)));
  EXPECT_EQ(host.Save(d.Key(0)).dropped, c.hashes[0]);
  EXPECT_NE(host.Find(a.Key(0)), kNoSlot);
  EXPECT_EQ(host.size(), 2);
  host.CheckIntegrity();
}

TEST(HostTier, ChecksMoreThanTheHash) {
  const HostPrompt a(2, 2);
  HostTier host(4);
  host.Save(a.Key(1));
  HostKey key = a.Key(1);
  key.tokens = std::span(a.tokens).first(kBlockTokens);
  EXPECT_NE(host.Find(key), kNoSlot);  // the same tokens
  key.parent = 5;
  EXPECT_EQ(host.Find(key), kNoSlot);
  key = a.Key(1);
  key.scope.adapter_id = 1;
  EXPECT_EQ(host.Find(key), kNoSlot);
  const std::vector<int32_t> others(kBlockTokens, 9);
  key = a.Key(1);
  key.tokens = others;
  EXPECT_EQ(host.Find(key), kNoSlot);
  EXPECT_TRUE(host.ContainsHash(key.hash));
}

// A sequence's blocks in a manager with a host tier.
struct CachedSequence {
  CachedSequence(BlockManager* its_manager, const HostPrompt* its_prompt)
      : manager(its_manager), prompt(its_prompt) {}

  // Attaches the cached prefix, takes blocks for the rest and publishes all. Returns the blocks
  // found on the device, and those loaded.
  std::pair<int32_t, int32_t> Compute() {
    const int32_t count = prompt->hashes.num_blocks();
    const BlockManager::Prefix prefix =
        manager->FindPrefix(prompt->hashes, prompt->tokens, count, &blocks);
    EXPECT_EQ(manager->NumPresent(prompt->hashes, count), prefix.num_blocks + prefix.num_on_host);
    for (const BlockId block : blocks) manager->Ref(block);
    manager->TouchOnHost(prompt->hashes, prompt->tokens, prefix.num_blocks, prefix.num_on_host);
    int32_t num_loaded = 0;
    for (int32_t i = prefix.num_blocks; i < count; ++i) {
      blocks.push_back(manager->Allocate());
      const bool follows = i == prefix.num_blocks + num_loaded;
      if (follows && manager->Load(prompt->hashes, prompt->tokens, i, blocks)) ++num_loaded;
    }
    for (int32_t i = prefix.num_blocks + num_loaded; i < count; ++i) {
      EXPECT_TRUE(manager->Publish(prompt->hashes, prompt->tokens, i, blocks));
    }
    return {prefix.num_blocks, num_loaded};
  }
  void Release() {
    manager->Release(blocks);
    blocks.clear();
  }

  BlockManager* manager;
  const HostPrompt* prompt;
  std::vector<BlockId> blocks;
};

std::pair<int32_t, int32_t> ComputeAlone(BlockManager* manager, const HostPrompt& prompt) {
  CachedSequence sequence(manager, &prompt);
  const auto found = sequence.Compute();
  sequence.Release();
  manager->CheckIntegrity();
  return found;
}

std::vector<HostCopy> TakenCopies(BlockManager* manager) {
  std::vector<HostCopy> copies;
  manager->TakeHostCopies(&copies);
  return copies;
}

TEST(BlockManagerWithHostTier, EvictedBlocksComeBack) {
  const HostPrompt a(2, 3), b(3, 3);
  BlockManager manager(4, true, 0, 8);
  EXPECT_EQ(ComputeAlone(&manager, a), std::pair(0, 0));
  EXPECT_THAT(TakenCopies(&manager), IsEmpty());
  EXPECT_EQ(ComputeAlone(&manager, b), std::pair(0, 0));
  // The last block goes first.
  EXPECT_THAT(TakenCopies(&manager), ElementsAre(HostCopy{2, 0, true}, HostCopy{1, 1, true}));
  EXPECT_THAT(manager.changes().evicted, IsEmpty());  // they are found still
  EXPECT_EQ(ComputeAlone(&manager, a), std::pair(1, 2));
  // Two blocks of b make way for the blocks that are loaded.
  const std::vector<HostCopy> copies = TakenCopies(&manager);
  ASSERT_EQ(copies.size(), 4);
  EXPECT_TRUE(copies[0].to_host && copies[2].to_host);
  EXPECT_EQ(copies[1].slot, 1);
  EXPECT_EQ(copies[3].slot, 0);
  EXPECT_EQ(manager.num_saved(), 4);
  EXPECT_EQ(manager.num_loaded(), 2);
}

TEST(BlockManagerWithHostTier, ASlotIsGivenAwayBehindItsLoad) {
  const HostPrompt a(2, 3), b(3, 3), c(4, 3);
  BlockManager manager(3, true, 0, 3);
  ComputeAlone(&manager, a);
  ComputeAlone(&manager, b);  // the host is full of a
  TakenCopies(&manager);
  manager.ForgetChanges();
  // The first block of b to leave takes the slot of the last block of a; the next two take the
  // slots of what was just loaded.
  EXPECT_EQ(ComputeAlone(&manager, a), std::pair(0, 2));
  const std::vector<HostCopy> copies = TakenCopies(&manager);
  ASSERT_EQ(copies.size(), 5);
  EXPECT_TRUE(copies[0].to_host && copies[2].to_host && copies[4].to_host);
  EXPECT_EQ(copies[1].slot, copies[2].slot);
  EXPECT_EQ(copies[3].slot, copies[4].slot);
  EXPECT_THAT(manager.changes().evicted, ElementsAre(a.hashes[2]));
  EXPECT_THAT(manager.changes().published, ElementsAre(a.hashes[2]));  // it was computed again
}

TEST(BlockManagerWithHostTier, ContentsOfTwoTiersAreCopiedOnce) {
  const HostPrompt a(2, 2), b(3, 2);
  BlockManager manager(2, true, 0, 8);
  for (int i = 0; i < 4; ++i) {
    ComputeAlone(&manager, a);
    ComputeAlone(&manager, b);
  }
  EXPECT_EQ(manager.num_saved(), 4);
  EXPECT_EQ(manager.num_loaded(), 12);
}

// The events of a cache, as "+hash" and "-hash".
class EventLog final : public BlockListener {
 public:
  void OnStored(const PrefixKey& key, std::optional<uint64_t>) override {
    events.push_back("+" + std::to_string(key.hash));
  }
  void OnRemoved(uint64_t hash) override { events.push_back("-" + std::to_string(hash)); }

  std::vector<std::string> events;
};

TEST(BlockManagerWithHostTier, ABlockIsRemovedWhenItHasLeftBothTiers) {
  const HostPrompt a(2, 2), b(3, 2), c(4, 2);
  const auto added = [](const HostPrompt& prompt, int32_t i) {
    return "+" + std::to_string(prompt.hashes[i]);
  };
  const auto removed = [](const HostPrompt& prompt, int32_t i) {
    return "-" + std::to_string(prompt.hashes[i]);
  };
  BlockManager manager(2, true, 0, 2);
  EventLog log;
  manager.set_listener(&log);
  ComputeAlone(&manager, a);
  ComputeAlone(&manager, b);
  EXPECT_THAT(log.events, ElementsAre(added(a, 0), added(a, 1), added(b, 0), added(b, 1)));
  log.events.clear();
  ComputeAlone(&manager, c);  // b goes to the host, and drops a
  EXPECT_THAT(log.events, ElementsAre(removed(a, 1), removed(a, 0), added(c, 0), added(c, 1)));
  log.events.clear();
  // The last block of c needs a slot, and takes that of the last block of b.
  EXPECT_EQ(ComputeAlone(&manager, b), std::pair(0, 1));
  EXPECT_THAT(log.events, ElementsAre(removed(b, 1), added(b, 1)));
}

// Sequences that share beginnings come and go; copies move numbers as a device would.
TEST(BlockManagerWithHostTier, BlocksHaveTheContentsOfTheirHashes) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<HostPrompt> prompts;
    for (int32_t i = 0; i < 12; ++i) {
      prompts.emplace_back(10 + i % 5, static_cast<int32_t>(random.Between(1, 6)),
                           static_cast<int32_t>(random.Between(0, 4)));
    }
    const auto num_blocks = static_cast<int32_t>(random.Between(12, 20));
    BlockManager manager(num_blocks, true, 0, static_cast<int32_t>(random.Between(1, 40)));
    std::vector<uint64_t> device(num_blocks), host(manager.host().num_slots());
    std::vector<CachedSequence> sequences;
    for (int i = 0; i < 200; ++i) {
      if (sequences.size() == 2 || (!sequences.empty() && random.OneIn(3))) {
        sequences.front().Release();
        sequences.erase(sequences.begin());
      } else {
        sequences.emplace_back(&manager, &prompts[random.Between(0, 11)]);
        const CachedSequence& sequence = sequences.back();
        const auto [num_found, num_loaded] = sequences.back().Compute();
        for (const HostCopy& copy : TakenCopies(&manager)) {
          (copy.to_host ? host[copy.slot] : device[copy.block]) =
              copy.to_host ? device[copy.block] : host[copy.slot];
        }
        for (int32_t k = 0; k < sequence.prompt->hashes.num_blocks(); ++k) {
          uint64_t& contents = device[sequence.blocks[k]];
          if (k >= num_found + num_loaded) contents = sequence.prompt->hashes[k];
          ASSERT_EQ(contents, sequence.prompt->hashes[k]);
        }
      }
      manager.CheckIntegrity();
    }
  }
}

}  // namespace
}  // namespace skein
