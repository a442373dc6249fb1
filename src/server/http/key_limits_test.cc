#include "server/http/key_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "testing/fake_server.h"

namespace skein {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSecondUs = 1'000'000;

TEST(KeyLimits, ABucketOfAMinute) {
  const std::vector<ApiKey> keys = {{.key = "a", .requests_per_minute = 6}, {.key = "b"}};
  KeyLimits limits(keys);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(limits.Admit(0, 0).ok());
  const Status refused = limits.Admit(0, 4 * kSecondUs).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("requests_per_minute"));
  EXPECT_EQ(refused.retry_after_s(), 6);  // one request comes back every 10 s
  EXPECT_TRUE(limits.Admit(0, 10 * kSecondUs).ok());
  EXPECT_FALSE(limits.Admit(0, 10 * kSecondUs).ok());
  // After an hour, the bucket still holds no more than a minute's requests.
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(limits.Admit(0, 3600 * kSecondUs).ok());
  EXPECT_FALSE(limits.Admit(0, 3600 * kSecondUs).ok());
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(limits.Admit(1, 0).ok());
}

TEST(KeyLimits, ParallelRequestsEndWithTheirPermits) {
  const std::vector<ApiKey> keys = {{.key = "a", .max_parallel_requests = 2}};
  KeyLimits limits(keys);
  const auto first = limits.Admit(0, 0);
  {
    const auto second = limits.Admit(0, 0);
    EXPECT_TRUE(first.ok() && second.ok());
    EXPECT_THAT(limits.Admit(0, 0).status().message(), HasSubstr("max_parallel_requests"));
  }
  EXPECT_TRUE(limits.Admit(0, 0).ok());
}

TEST(KeyLimits, TokensAreCountedOnceTheyAreKnown) {
  const std::vector<ApiKey> keys = {{.key = "a", .tokens_per_minute = 600}, {.key = "b"}};
  KeyLimits limits(keys);
  EXPECT_FALSE(limits.Charger(1));
  const auto charge = limits.Charger(0);
  ASSERT_TRUE(charge);
  EXPECT_TRUE(limits.Admit(0, 0).ok());
  charge(599);
  EXPECT_TRUE(limits.Admit(0, 0).ok());  // one token is left
  charge(101);
  const Status refused = limits.Admit(0, 0).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("tokens_per_minute"));
  // 100 tokens too many, at 10 tokens a second, and one token for the request.
  EXPECT_EQ(refused.retry_after_s(), 11);
  EXPECT_FALSE(limits.Admit(0, 10 * kSecondUs).ok());
  EXPECT_TRUE(limits.Admit(0, 11 * kSecondUs).ok());
}

TEST(KeyLimits, ADaysTokens) {
  const std::vector<ApiKey> keys = {{.key = "a", .tokens_per_day = 86400}};
  KeyLimits limits(keys);
  limits.Charger(0)(86400 + 99);
  const Status refused = limits.Admit(0, 0).status();
  EXPECT_THAT(refused.message(), HasSubstr("tokens_per_day"));
  EXPECT_EQ(refused.retry_after_s(), 100);
  EXPECT_TRUE(limits.Admit(0, 100 * kSecondUs).ok());
}

TEST(KeyLimits, TheLongestWaitIsTold) {
  const std::vector<ApiKey> keys = {
      {.key = "a", .requests_per_minute = 1, .tokens_per_minute = 60, .tokens_per_day = 86400}};
  KeyLimits limits(keys);
  EXPECT_TRUE(limits.Admit(0, 0).ok());
  EXPECT_EQ(limits.Admit(0, 0).status().retry_after_s(), 60);
  limits.Charger(0)(86400 + 99);
  const Status refused = limits.Admit(0, 0).status();
  EXPECT_THAT(refused.message(), HasSubstr("tokens_per_minute"));
  // The minute's bucket has the longer wait: 86,439 tokens at one a second, and one for the
  // request.
  EXPECT_EQ(refused.retry_after_s(), 86400 + 99 - 60 + 1);
}

class KeyLimitsServerTest : public testing::ServerTest {};

TEST_F(KeyLimitsServerTest, OneKeysLimitStopsNoOther) {
  ServerConfig config;
  config.api_keys = {{.key = "small", .requests_per_minute = 2}, {.key = "large"}};
  Start(config);
  const auto status_of = [&](const std::string& key) {
    return testing::Client(port_).Post("/v1/completions", R"({"prompt": "Hi"})",
                                       {{"Authorization", "Bearer " + key}});
  };
  EXPECT_EQ(status_of("small").status, 200);
  EXPECT_EQ(status_of("small").status, 200);
  const testing::Answer refused = status_of("small");
  EXPECT_EQ(refused.status, 429);
  EXPECT_NE(refused.Field("retry-after"), "");
  EXPECT_EQ(status_of("large").status, 200);
}

TEST_F(KeyLimitsServerTest, PromptsAndAnswersCountAgainstAKeysTokens) {
  ServerConfig config;
  config.api_keys = {{.key = "small", .tokens_per_minute = 30}, {.key = "large"}};
  Start(config);
  const auto ask = [&](const std::string& path, const std::string& body) {
    return testing::Client(port_).Post(path, body, {{"Authorization", "Bearer small"}});
  };
  // The first request takes 2 + 5 tokens, the second 3 (a read of 1 token with 2 labels), the third
  // more than the rest.
  EXPECT_EQ(ask("/v1/completions", R"({"prompt": "Hi", "max_tokens": 5})").status, 200);
  EXPECT_EQ(
      ask("/v1/score", R"({"query": "q", "items": ["a", "b"], "label_token_ids": [1, 2]})").status,
      200);
  EXPECT_EQ(ask("/v1/completions", R"({"prompt": "Hello", "max_tokens": 40, "ignore_eos": true,
                                      "stream": true})")
                .status,
            200);
  const testing::Answer refused = ask("/v1/completions", R"({"prompt": "Hi"})");
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.body, HasSubstr("tokens_per_minute"));
  // 7 + 3 + 45 tokens were taken from 30: 25 too many, at one token in 2 s, and one for the
  // request.
  const int64_t wait_s = std::stoll(refused.Field("retry-after"));
  EXPECT_GE(wait_s, 40);
  EXPECT_LE(wait_s, 56);
}

}  // namespace
}  // namespace skein
