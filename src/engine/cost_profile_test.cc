#include "engine/cost_profile.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

EngineConfig Config(const char* preset) {
  EngineConfig config;
  config.scheduler.policies = FindPreset(preset)->policies;
  config.vocab_size = 1000;
  config.scheduler.max_model_len = 4096;
  config.scheduler.num_kv_blocks = 300;
  config.scheduler.max_num_batched_tokens = 512;
  return config;
}

CostProfileLimits LimitsOf(const EngineConfig& config) {
  return ProfileLimitsOf(MakeSchedulerConfig(config).value());
}

// Predictions for complete prompts need measurements of complete prompts.
TEST(ProfileLimitsOf, ReachesTheLongestPromptWherePromptsRunWhole) {
  EngineConfig config = Config("prefill-only");
  EXPECT_EQ(LimitsOf(config).max_step_tokens, 4096);
  EXPECT_EQ(LimitsOf(config).max_model_len, 4096);
  config.scheduler.policies.retention = Retention::kNone;
  EXPECT_EQ(LimitsOf(config).max_step_tokens, 4096);
  config.scheduler.max_num_batched_tokens = 8192;  // room for several prompts
  EXPECT_EQ(LimitsOf(config).max_step_tokens, 8192);
}

// Contiguous storage holds only one sequence.
TEST(ProfileLimitsOf, OneRowWhereOneSequenceIsHeld) {
  EngineConfig config = Config("flow-prefill");
  EXPECT_EQ(LimitsOf(config).max_rows, 2);
  config.scheduler.kv_storage = KvStorage::kContiguous;
  config.scheduler.max_num_seqs = 1;
  EXPECT_EQ(LimitsOf(config).max_rows, 1);
}

TEST(ProfileLimitsOf, EndsAtTheBudgetWherePromptsAreCutIntoSteps) {
  EngineConfig config = Config("prefill-only");
  config.scheduler.policies.retention = Retention::kAll;
  EXPECT_EQ(LimitsOf(config).max_step_tokens, 512);
  EXPECT_EQ(LimitsOf(Config("flow-prefill")).max_step_tokens, 512);
  EXPECT_EQ(LimitsOf(Config("flow-prefill")).max_model_len, 4096);
}

TEST(ProfileLimitsOf, LeavesOutWhatIsCachedWherePromptsAreReadWhole) {
  EngineConfig config = Config("prefill-only");
  EXPECT_TRUE(LimitsOf(config).cached);
  config.reads_whole_prompts = true;
  config.generates = false;
  EXPECT_FALSE(LimitsOf(config).cached);
}

}  // namespace
}  // namespace skein
