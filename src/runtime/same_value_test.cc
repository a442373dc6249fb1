// The same decision is asked a thousand times: alone, in a batch, cached, in chunks, with a shared
// prefix, as OneShot and as Decode. All values are equal, bit for bit.

#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "testing/cpu_engine.h"

namespace skein {
namespace {

using testing::Answer;
using testing::ServeOptions;
using testing::Server;

constexpr int kAsksPerServer = 100;

class SameValueTest : public ::testing::Test {
 protected:
  SameValueTest() { std::printf("seed %llu\n", static_cast<unsigned long long>(seed_)); }

  std::vector<TokenId> Tokens(int32_t count) {
    std::vector<TokenId> tokens;
    while (std::ssize(tokens) < count) tokens.push_back(static_cast<TokenId>(random_() % 128));
    return tokens;
  }

  // A question with `own` tokens behind the input.
  Request Question(const std::vector<TokenId>& input, int32_t own) {
    Request request;
    request.prompt = input;
    const std::vector<TokenId> tokens = Tokens(own);
    request.prompt.insert(request.prompt.end(), tokens.begin(), tokens.end());
    request.output = LabelSpec{.tokens = {5, 77, 6}, .want_log_sum_exp = random_() % 4 == 0};
    return request;
  }

  Request Chat(const std::vector<TokenId>& head) {
    Request request;
    request.prompt = head;
    request.prompt.push_back(static_cast<TokenId>(random_() % 128));
    request.generate().max_tokens = 1 + static_cast<int32_t>(random_() % 24);
    request.generate().sampling.temperature = 0;
    return request;
  }

  const uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
};

TEST_F(SameValueTest, AThousandAsksGiveOneValue) {
  const std::vector<TokenId> input = Tokens(100);
  Request decision = Question(input, 13);
  decision.output = LabelSpec{.tokens = {5, 77, 6}};
  std::vector<float> expected;
  {
    Server alone({.caching = false, .preset = "chunked-fcfs"});
    expected = alone.Ask(decision).read->values;
  }
  ASSERT_EQ(expected.size(), 3u);
  const ServeOptions servers[] = {
      {},
      {.caching = false},
      {.preset = "chunked-fcfs"},
      {.caching = false, .preset = "chunked-fcfs"},
      {.max_num_batched_tokens = 32},
      {.max_num_batched_tokens = 41, .caching = false},
      {.max_num_batched_tokens = 57, .num_kv_blocks = 12},
      {.max_num_batched_tokens = 90, .preset = "paged-fcfs"},
      {.max_num_batched_tokens = 33, .num_kv_blocks = 10, .preset = "request-level"},
      {.max_num_batched_tokens = 150, .force_decode_path = true},
      {.preset = "paged-fcfs", .sharing = Sharing::kPreemptOp},
      {.retention = Retention::kPrefix, .sharing = Sharing::kPreemptLayer},
  };
  int num_asked = 0, num_alone = 0, num_cached = 0, num_beside = 0;
  uint64_t num_forests = 0;
  for (const ServeOptions& options : servers) {
    SCOPED_TRACE(options.preset + ", budget " + std::to_string(options.max_num_batched_tokens));
    Server server(options);
    for (int asked = 0; asked < kAsksPerServer;) {
      std::vector<Request> load;
      std::set<size_t> asks;
      const auto ask = [&] {
        asks.insert(load.size());
        load.push_back(decision);
      };
      const bool alone = random_() % 4 == 0;
      if (!alone) {
        for (uint64_t i = random_() % 3; i > 0; --i) load.push_back(Chat(Tokens(40)));
        for (uint64_t i = random_() % 3; i > 0; --i) load.push_back(Question(input, 20));
        if (random_() % 3 == 0) load.push_back(Chat(input));
      }
      ask();
      if (!alone) {
        load.push_back(Question(Tokens(70), 9));
        if (random_() % 2 == 0) ask();
      }
      const std::vector<Answer> answers = server.AskAll(load);
      for (const size_t i : asks) {
        ASSERT_EQ(answers[i].read->values, expected);
        num_cached += answers[i].cached_tokens > 0;
      }
      asked += static_cast<int>(asks.size());
      num_asked += static_cast<int>(asks.size());
      num_alone += alone;
      num_beside += !alone;
    }
    num_forests += server.engine().Stats().shared_prefixes;
  }
  EXPECT_GE(num_asked, 1000);
  EXPECT_GT(num_alone, 100);
  EXPECT_GT(num_beside, 100);
  EXPECT_GT(num_cached, 100);
  EXPECT_GT(num_forests, 50u);
}

// Clients with overlapping requests stop each other's prefills.
TEST_F(SameValueTest, WhoeverStopsIt) {
  constexpr int kClients = 4;
  const std::vector<TokenId> input = Tokens(100);
  std::vector<Request> decisions;
  for (int i = 0; i < 8; ++i) {
    decisions.push_back(Question(i < 4 ? input : Tokens(150), 10 * i + 1));
  }
  std::vector<Answer> expected;
  {
    Server alone({.caching = false, .preset = "chunked-fcfs"});
    for (const Request& decision : decisions) expected.push_back(alone.Ask(decision));
  }
  const ServeOptions servers[] = {
      {.max_num_batched_tokens = 400,
       .caching = false,
       .preset = "paged-fcfs",
       .sharing = Sharing::kPreemptOp},
      {.max_num_batched_tokens = 400, .sharing = Sharing::kPreemptOp},
      {.max_num_batched_tokens = 400,
       .caching = false,
       .execution = Execution::kHybrid,
       .retention = Retention::kNone,
       .sharing = Sharing::kPreemptLayer},
  };
  for (const ServeOptions& options : servers) {
    Server server(options);
    const auto ask_many = [&](uint64_t seed) {
      std::mt19937_64 random(seed);
      for (int i = 0; i < 60; ++i) {
        const size_t which = random() % decisions.size();
        Request request = decisions[which];
        request.priority = static_cast<int32_t>(random() % 4);
        testing::ExpectSame(server.Ask(request), expected[which]);
      }
    };
    for (int round = 0; round < 20 && server.engine().Stats().steps_resumed < 5; ++round) {
      std::vector<std::thread> clients;
      for (int i = 0; i < kClients; ++i) clients.emplace_back(ask_many, random_());
      for (std::thread& client : clients) client.join();
    }
    EXPECT_GE(server.engine().Stats().steps_resumed, 5u);
    EXPECT_GT(server.engine().Stats().signals, 0u);
  }
}

}  // namespace
}  // namespace skein
