// Compares the cache-aware orders of the scheduler, which use block hashes, with the original
// orders over a radix tree of tokens.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "bench/sched/radix_orders.h"
#include "bench/sched/radix_tree.h"
#include "kv/block_pool.h"
#include "kv/prefix_hashes.h"
#include "sched/order/depth_first.h"
#include "testing/order_scan.h"

namespace skein {
namespace {

using testing::CompareWithOrder;
using testing::MakeRequest;
using testing::RandomLetters;
using testing::ReferenceCache;
using testing::Waiting;

using Prompt = std::vector<int32_t>;

// Prompts consist of full blocks, some of which are cached. The reference is the order over the
// radix tree of their tokens.
TEST(CacheAwareOrders, DepthFirstIsTheOrderOverTheRadixTree) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    const auto some_blocks = [&] {
      Prompt tokens;
      for (int64_t i = random.Between(0, 6); i > 0; --i) {
        tokens.insert(tokens.end(), kBlockTokens, static_cast<int32_t>(random.Between(0, 2)));
      }
      return tokens;
    };
    RadixTree cached;
    for (int64_t i = random.Between(1, 8); i > 0; --i) cached.Insert(some_blocks());
    std::vector<Prompt> prompts;
    std::vector<PrefixHashes> hashes;
    for (int i = 0; i < 40; ++i) {
      prompts.push_back(some_blocks());
      hashes.emplace_back().Extend(prompts.back());
    }
    // In the reference, prompts must end at nodes, so an edge is split where a prompt ends inside
    // it.
    for (const Prompt& prompt : prompts) {
      const int32_t length = cached.Match(prompt).num_tokens;
      cached.Insert(std::span(prompt).first(static_cast<size_t>(length)));
    }
    std::vector<CachedPath> paths;
    for (int32_t i = 0; i < std::ssize(prompts); ++i) {
      const int32_t num_blocks = cached.Match(prompts[i]).num_tokens / kBlockTokens;
      paths.push_back({.hashes = hashes[i].blocks().first(static_cast<size_t>(num_blocks)),
                       .arrival = static_cast<uint64_t>(i),
                       .index = i});
    }
    RankDepthFirst(paths);
    std::ranges::sort(paths, {}, [](const CachedPath& p) { return std::pair(p.rank, p.arrival); });
    std::vector<int32_t> order;
    for (const CachedPath& path : paths) order.push_back(path.index);
    const std::vector<std::span<const int32_t>> spans(prompts.begin(), prompts.end());
    EXPECT_EQ(order, DfsWeightOrder(cached, spans));
  }
}

// The load of CompareWithScan under the order lpm. The scheduler must pick the first request of the
// original order over a radix tree of the cached tokens. Each prompt ends with a token that fills
// no block, so that both orders find only full blocks.
TEST(CacheAwareOrders, LpmPicksTheFirstByTheRadixTree) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    EngineConfig config;
    config.scheduler.policies = FindPreset("prefill-only")->policies;
    // One request per step, as in the reference.
    config.scheduler.policies.batching = Batching::kSingle;
    config.vocab_size = 1000;
    config.scheduler.max_model_len = 4096;
    config.scheduler.num_kv_blocks = static_cast<int32_t>(9 + seed * 3);
    config.scheduler.max_num_batched_tokens = 4096;
    config.scheduler.policies.retention = Retention::kAll;  // as in the reference's cache
    config.scheduler.policies.order = Order::kLpm;
    CompareWithOrder(
        config, seed,
        [](Random* random) {
          Waiting one = {.letters = RandomLetters(random)};
          one.letters.tail = std::max(one.letters.tail, 1);
          return one;
        },
        [](const std::map<RequestId, Waiting>& waiting, const ReferenceCache& cache, TimeUs) {
          RadixTree cached;
          for (const std::string& block : cache.blocks()) {
            cached.Insert(MakeRequest({.blocks = block}).prompt);
          }
          std::vector<RequestId> ids;
          std::vector<std::vector<TokenId>> prompts;
          for (const auto& [id, request] : waiting) {  // in order of arrival
            ids.push_back(id);
            prompts.push_back(MakeRequest(request.letters).prompt);
          }
          const std::vector<std::span<const int32_t>> spans(prompts.begin(), prompts.end());
          return ids[LpmOrder(cached, spans)[0]];
        },
        [](const StepWork& work, Random*) { return std::llround(work.num_tokens); });
  }
}

}  // namespace
}  // namespace skein
