#include <gtest/gtest.h>

#include "testing/fake_server.h"

namespace skein::testing {
namespace {

TEST_F(ServerTest, TheSchedulersStateIsAnswered) {
  EngineView view;
  view.requests.push_back({.id = 7,
                           .state = RequestView::State::kSuspended,
                           .oneshot = true,
                           .prompt_tokens = 90,
                           .age_us = 1500,
                           .slack_us = -500});
  view.requests.push_back({.id = 8});
  view.num_suspended = view.num_waiting = 1;
  view.prefixes = {{-1, 3, 2}, {0, 1, 0}};
  view.num_prefixes = 2;
  view.block_tokens = 32;
  view.num_blocks = 64;
  engine_.set_view(view);
  ServerConfig config;
  config.api_keys.push_back({.key = "secret"});
  Start(std::move(config));
  EXPECT_EQ(Get("/scheduler").status, 401);
  const Json json = Get("/scheduler", {{"Authorization", "Bearer secret"}}).json();
  EXPECT_EQ(json["model"], "fake");
  EXPECT_EQ(json["num_suspended"], 1);
  ASSERT_EQ(json["requests"].size(), 2u);
  EXPECT_EQ(json["requests"][0]["state"], "suspended");
  EXPECT_EQ(json["requests"][0]["class"], "oneshot");
  EXPECT_EQ(json["requests"][0]["age_ms"], 1.5);
  EXPECT_EQ(json["requests"][0]["slack_ms"], -0.5);
  EXPECT_EQ(json["requests"][1]["state"], "waiting");
  EXPECT_TRUE(json["requests"][1]["slack_ms"].is_null());
  EXPECT_EQ(json["prefixes"].dump(), R"([{"parent":-1,"num_blocks":3,"num_sequences":2},)"
                                     R"({"parent":0,"num_blocks":1,"num_sequences":0}])");
}

}  // namespace
}  // namespace skein::testing
