#include "bench/sched/radix_candidate.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace skein {
namespace {

using Prompt = std::vector<int32_t>;

TEST(RadixCandidate, NobodyWaits) {
  const Prompt one = {1};
  const std::vector<std::span<const int32_t>> active = {one};
  EXPECT_EQ(FindRadixCandidate(active, {}), std::nullopt);
}

// If a chunk is one token, the choice equals that of the chunked hash tree.
TEST(RadixCandidate, IsTheChoiceOfTheHashTree) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    ChunkedHashTree tree(ChunkedHashTree::Choice::kLeastPrefixLoss);
    ChunkHasher hasher(1);
    std::vector<Prompt> prompts(20);
    std::vector<std::vector<uint64_t>> vectors(prompts.size());
    std::vector<std::span<const int32_t>> active;
    std::vector<RadixPrompt> waiting;
    std::vector<ChunkedHashTree::Handle> handles;
    const int64_t num_active = random.Between(0, 5);
    for (size_t i = 0; i < prompts.size(); ++i) {
      prompts[i].resize(random.Between(1, 12));
      for (int32_t& token : prompts[i]) token = static_cast<int32_t>(random.OneIn(4));
      hasher.Streaming(prompts[i], 0, &vectors[i]);
      const ChunkedHashTree::Rank rank = {.priority = static_cast<int32_t>(random.OneIn(9)),
                                          .rank = random.Between(0, 2),
                                          .arrival = i};
      const auto handle = tree.Insert(ViewOf(vectors[i]), rank);
      if (static_cast<int64_t>(i) < num_active) {
        tree.Add(handle);
        active.push_back(prompts[i]);
      } else {
        handles.push_back(handle);
        waiting.push_back({prompts[i], rank});
      }
    }
    const auto expected = tree.FindBest();
    const auto best = FindRadixCandidate(active, waiting);
    ASSERT_TRUE(expected && best);
    EXPECT_EQ(handles[best->index], expected->request);
    EXPECT_EQ(best->num_missing, expected->num_missing);
    EXPECT_EQ(best->shared_before, expected->shared_before);
    EXPECT_EQ(best->shared_after, expected->shared_after);
    EXPECT_EQ(CountRadixPeers(waiting, best->index, expected->shared_after), expected->num_peers);
  }
}

}  // namespace
}  // namespace skein
