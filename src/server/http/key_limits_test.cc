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
  EXPECT_EQ(refused.retry_after_s(), 6);  // one comes back every 10 s
  EXPECT_TRUE(limits.Admit(0, 10 * kSecondUs).ok());
  EXPECT_FALSE(limits.Admit(0, 10 * kSecondUs).ok());
  // An hour fills no more than a minute's.
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

}  // namespace
}  // namespace skein
