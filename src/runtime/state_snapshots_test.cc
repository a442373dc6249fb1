// A chat with a model that has linear layers: each turn starts from a snapshot that the answer
// before it left. All values are those of a server without a cache, bit for bit.

#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "testing/cpu_engine.h"

namespace skein {
namespace {

using testing::Answer;
using testing::ServeOptions;
using testing::Server;

TEST(StateSnapshots, ATurnStartsBehindTheLastAnswer) {
  const uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  const ServeOptions options{.model = "models/qwen3.5", .max_num_batched_tokens = 64};
  ServeOptions alone = options;
  alone.caching = false;
  Server cached(options), uncached(alone);
  Request request;
  for (int turn = 0; turn < 3; ++turn) {
    SCOPED_TRACE("turn " + std::to_string(turn));
    const auto begun = static_cast<int32_t>(request.prompt.size());
    const auto own = 2 + static_cast<int32_t>(random() % 40);
    for (int32_t i = 0; i < own; ++i) {
      request.prompt.push_back(static_cast<TokenId>(random() % 128));
    }
    request.generate().max_tokens = 35;
    request.generate().sampling = {.temperature = 0.7f, .seed = random()};
    request.prompt_logprobs = {.num_top = 1, .start = begun + 1};
    const Answer answer = cached.Ask(request);
    ExpectSame(answer, uncached.Ask(request));
    ASSERT_EQ(answer.tokens.size(), 35u);
    // The last token of an answer is not computed.
    const int32_t num_before = turn == 0 ? 0 : begun - 1;
    EXPECT_EQ(answer.cached_tokens, num_before / kBlockTokens * kBlockTokens);
    request.prompt.insert(request.prompt.end(), answer.tokens.begin(), answer.tokens.end());
  }
}

}  // namespace
}  // namespace skein
