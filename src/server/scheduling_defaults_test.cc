#include "server/scheduling_defaults.h"

#include <gmock/gmock.h>

#include "testing/fake_server.h"

namespace skein::testing {
namespace {

using ::testing::HasSubstr;

TEST(RouteDefaultsTest, AreReadByClass) {
  auto routes = ParseRouteDefaults({"decide:ttft=250,tpot=50.5,priority=-1", "rank:ttft=40"});
  ASSERT_TRUE(routes.ok()) << routes.status().message();
  EXPECT_EQ(routes->at(RouteClass::kDecide),
            (SchedulingDefaults{.slo_ttft_ms = 250, .slo_tpot_ms = 50.5, .priority = -1}));
  EXPECT_EQ(routes->at(RouteClass::kRank), (SchedulingDefaults{.slo_ttft_ms = 40}));
  EXPECT_EQ(routes->size(), 2u);
  for (const char* wrong :
       {"decide", "decide:", "judge:ttft=1", "decide:ttft=0", "decide:ttft=-1", "decide:ttft=nan",
        "decide:ttft=90000000", "decide:ttft=1,ttft=2", "decide:ttft=1,", "decide:e2el=1",
        "decide:priority=1.5", "decide:ttft"}) {
    const auto refused = ParseRouteDefaults({wrong});
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_THAT(refused.status().message(), HasSubstr(wrong));
  }
  EXPECT_FALSE(ParseRouteDefaults({"decide:ttft=1", "decide:tpot=1"}).ok());
}

TEST(ApiKeysTest, AreReadAndNeverTold) {
  auto keys = ParseApiKeys(R"([{"key": "a", "slo_ttft_ms": 250, "priority": 2},
                                     {"key": "b", "tokens_per_minute": 100,
                                      "tokens_per_day": 5000000000}])");
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  ASSERT_EQ(keys->size(), 2u);
  EXPECT_EQ((*keys)[0].key, "a");
  EXPECT_EQ((*keys)[0].defaults, (SchedulingDefaults{.slo_ttft_ms = 250, .priority = 2}));
  EXPECT_EQ((*keys)[1].defaults, SchedulingDefaults{});
  EXPECT_EQ((*keys)[1].tokens_per_minute, 100);
  EXPECT_EQ((*keys)[1].tokens_per_day, 5'000'000'000);
  const auto error = [](const char* json) {
    const auto refused = ParseApiKeys(json);
    return refused.ok() ? std::string("ok") : refused.status().message();
  };
  EXPECT_THAT(error("{}"), HasSubstr("array"));
  EXPECT_THAT(error("[]"), HasSubstr("at least one"));
  EXPECT_THAT(error("[1]"), HasSubstr("[0] must be an object"));
  EXPECT_THAT(error(R"([{"priority": 1}])"), HasSubstr("[0].key must be given"));
  EXPECT_THAT(error(R"([{"key": "a"}, {"key": "a"}])"), HasSubstr("[1].key appears twice"));
  EXPECT_THAT(error(R"([{"key": "a", "tokens_per_day": 0}])"), HasSubstr("[0].tokens_per_day"));
  EXPECT_THAT(error(R"([{"key": "secret", "slo_tpot_ms": 0}])"), HasSubstr("[0].slo_tpot_ms"));
  EXPECT_THAT(error(R"([{"key": "secret", "slo_tpot_ms": 0}])"), Not(HasSubstr("secret")));
}

class SchedulingDefaultsTest : public ServerTest {
 protected:
  Request Last(const std::string& fields, const std::string& key) {
    const Answer answer = Post("/v1/completions", R"({"prompt": "Hi")" + fields + "}",
                               {{"Authorization", "Bearer " + key}});
    EXPECT_EQ(answer.status, 200) << answer.body;
    return engine_.last_request();
  }
};

// A request's own fields take precedence, then those of its key, then those of its route.
TEST_F(SchedulingDefaultsTest, FillWhatTheRequestLacks) {
  ServerConfig config;
  config.api_keys = {{.key = "plain"},
                     {.key = "fast", .defaults = {.slo_ttft_ms = 30, .priority = -3}}};
  config.route_defaults[RouteClass::kGenerate] = {.slo_ttft_ms = 900, .slo_tpot_ms = 70};
  config.route_defaults[RouteClass::kDecide] = {.slo_ttft_ms = 1};
  Start(std::move(config));
  Request request = Last("", "plain");
  EXPECT_EQ(request.slo_ttft_us, 900'000);
  EXPECT_EQ(request.slo_tpot_us, 70'000);
  EXPECT_EQ(request.priority, 0);
  request = Last(R"(, "slo_tpot_ms": 8, "slo_ttft_ms": null)", "fast");
  EXPECT_EQ(request.slo_ttft_us, 30'000);
  EXPECT_EQ(request.slo_tpot_us, 8'000);
  EXPECT_EQ(request.priority, -3);
  request = Last(R"(, "slo_ttft_ms": 2.5, "priority": 4)", "fast");
  EXPECT_EQ(request.slo_ttft_us, 2'500);
  EXPECT_EQ(request.priority, 4);
  EXPECT_EQ(Post("/v1/completions", R"({"prompt": "Hi"})", {{"Authorization", "Bearer x"}}).status,
            401);
  EXPECT_THAT(Get("/metrics").body,
              HasSubstr(R"(skein_slo_ttft_total{class="generate",met="true",model_name="fake",)"
                        R"(slo_le="1"} 1)"));
}

TEST_F(SchedulingDefaultsTest, WithoutAnyNothingIsAdded) {
  Start();
  const Request request = Last("", "whatever");
  EXPECT_FALSE(request.slo_ttft_us || request.slo_tpot_us);
  EXPECT_EQ(request.priority, 0);
}

}  // namespace
}  // namespace skein::testing
