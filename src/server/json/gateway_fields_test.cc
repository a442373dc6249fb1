#include <gtest/gtest.h>

#include <utility>

#include "testing/fake_server.h"

namespace skein::testing {
namespace {

class GatewayFieldsTest : public ServerTest {
 protected:
  // The request that the engine gets from an HTTP request with these headers.
  Request Sent(const Headers& headers, const std::string& fields = "") {
    const Answer answer =
        Post("/v1/completions",
             R"({"prompt": "Hi", "max_tokens": 1)" + (fields.empty() ? "" : ", " + fields) + "}",
             headers);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return engine_.last_request();
  }
};

TEST_F(GatewayFieldsTest, TheHeadSaysWhatTheBodyDoesNot) {
  ServerConfig config;
  config.objectives = {{"batch", 7}, {"fast", -3}};
  Start(std::move(config));
  const Headers head = {{"x-llm-d-slo-ttft-ms", "250"},
                        {"x-llm-d-slo-tpot-ms", "12.5"},
                        {"x-llm-d-inference-fairness-id", "tenant"},
                        {"x-llm-d-inference-objective", "fast"}};
  const Request by_head = Sent(head);
  EXPECT_EQ(by_head.slo_ttft_us, 250'000);
  EXPECT_EQ(by_head.slo_tpot_us, 12'500);
  EXPECT_EQ(by_head.user, "tenant");
  EXPECT_EQ(by_head.priority, -3);
  const Request by_body =
      Sent(head, R"("slo_ttft_ms": 100, "slo_tpot_ms": 20, "user": "u", "priority": 1)");
  EXPECT_EQ(by_body.slo_ttft_us, 100'000);
  EXPECT_EQ(by_body.slo_tpot_us, 20'000);
  EXPECT_EQ(by_body.user, "u");
  EXPECT_EQ(by_body.priority, 1);
}

TEST_F(GatewayFieldsTest, OtherSpellingsAndValuesOfOtherKinds) {
  ServerConfig config;
  config.objectives = {{"batch", 7}};
  config.route_defaults[RouteClass::kGenerate].slo_ttft_ms = 900;
  Start(std::move(config));
  const Request old = Sent({{"x-slo-ttft-ms", "300"},
                            {"x-slo-tpot-ms", "30"},
                            {"x-gateway-inference-fairness-id", "f"},
                            {"x-gateway-inference-objective", "batch"}});
  EXPECT_EQ(old.slo_ttft_us, 300'000);
  EXPECT_EQ(old.slo_tpot_us, 30'000);
  EXPECT_EQ(old.user, "f");
  EXPECT_EQ(old.priority, 7);
  const Request none = Sent({{"x-llm-d-slo-ttft-ms", "soon"},
                             {"x-llm-d-slo-tpot-ms", "-1"},
                             {"x-llm-d-inference-objective", "unknown"}});
  EXPECT_EQ(none.slo_ttft_us, 900'000);  // from the route
  EXPECT_EQ(none.slo_tpot_us, std::nullopt);
  EXPECT_EQ(none.priority, 0);
}

}  // namespace
}  // namespace skein::testing
