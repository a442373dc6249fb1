// Batching `saturate`: prompts that fill the device run one at a time, short prompts run together.

#include <string>
#include <vector>

#include "testing/order_scan.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using testing::Letters;
using testing::MakeRequest;
using testing::Repeated;
using testing::RunStep;

// A device that 900 tokens saturate.
EngineConfig Config() {
  EngineConfig config;
  config.scheduler.policies = FindPreset("prefill-only")->policies;
  config.scheduler.policies.order = Order::kFcfs;
  config.vocab_size = 1000;
  config.scheduler.max_model_len = 4096;
  config.scheduler.num_kv_blocks = 400;
  config.scheduler.max_num_batched_tokens = 4096;
  config.scheduler.cost = {.step_us = 500, .token_us = 5, .pair_us = 0.01, .row_us = 20};
  return config;
}

// The requests of each step, for prompts that arrive at the same time.
std::vector<std::vector<RequestId>> Steps(const EngineConfig& config,
                                          const std::vector<Letters>& prompts) {
  Scheduler scheduler(MakeSchedulerConfig(config).value());
  TimeUs now_us = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    scheduler.Arrive(static_cast<RequestId>(i), MakeRequest(prompts[i]), now_us);
  }
  std::vector<std::vector<RequestId>> steps;
  while (!scheduler.empty()) steps.push_back(RunStep(&scheduler, &now_us, 1000));
  return steps;
}

// Prompts of these lengths, in tokens, that share nothing.
std::vector<Letters> Prompts(const std::vector<int32_t>& lengths) {
  std::vector<Letters> prompts;
  for (const int32_t length : lengths) {
    const auto letter = static_cast<char>('a' + prompts.size());
    prompts.push_back({Repeated(length / kBlockTokens, letter), length % kBlockTokens});
  }
  return prompts;
}

TEST(SaturationTokens, AreWhereTheFixedPartIsATenth) {
  EXPECT_EQ(SaturationTokens({.step_us = 500, .token_us = 5}), 900);
  EXPECT_EQ(SaturationTokens({.token_us = 5}), 0);
  EXPECT_EQ(SaturationTokens({.step_us = 500}), 0);
  EXPECT_EQ(SaturationTokens({}), 0);
}

TEST(BatchingSaturate, ShortPromptsShareAStepUpToTheSaturationOfTheDevice) {
  EXPECT_THAT(Steps(Config(), Prompts({600, 200, 100, 1, 400})),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4)));
}

TEST(BatchingSaturate, ALongPromptRunsAlone) {
  EXPECT_THAT(Steps(Config(), Prompts({40, 2000, 1, 40})),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2, 3)));
}

TEST(BatchingSaturate, OnlyMissingTokensCount) {
  const Letters first = {Repeated(60, 'x') + "a", 1}, second = {Repeated(60, 'x') + "b", 1},
                third = {Repeated(60, 'x') + "c", 1};
  EXPECT_THAT(Steps(Config(), {first, second, third}),
              ElementsAre(ElementsAre(0), ElementsAre(1, 2)));
}

TEST(BatchingSaturate, APromptWaitsForTheStepThatComputesItsPrefix) {
  const Letters first = {Repeated(8, 'x') + "a", 1}, second = {Repeated(8, 'x') + "b", 1},
                other = {"cde", 1};
  EXPECT_THAT(Steps(Config(), {first, second, other}),
              ElementsAre(ElementsAre(0, 2), ElementsAre(1)));

  EngineConfig config = Config();
  config.scheduler.max_prefix_wait_us = 0;
  EXPECT_THAT(Steps(config, {first, second, other}), ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(BatchingSaturate, OneAtATimeWhereTheDeviceIsNotKnown) {
  EngineConfig config = Config();
  config.scheduler.cost = {};
  EXPECT_THAT(Steps(config, Prompts({1, 1, 1})),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST(BatchingSaturate, TheTokenBudgetHoldsAllTheSame) {
  EngineConfig config = Config();
  config.scheduler.max_num_batched_tokens = 256;
  EXPECT_THAT(Steps(config, Prompts({200, 56, 1, 600})),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(3)));
}

}  // namespace
}  // namespace skein
