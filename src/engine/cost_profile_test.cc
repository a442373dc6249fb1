#include "engine/cost_profile.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

EngineConfig Config(const char* preset) {
  EngineConfig config;
  config.preset = preset;
  config.vocab_size = 1000;
  config.max_model_len = 4096;
  config.num_kv_blocks = 300;
  config.max_num_batched_tokens = 512;
  return config;
}

CostProfileLimits LimitsOf(const EngineConfig& config) {
  return ProfileLimitsOf(MakeSchedulerConfig(config).value());
}

// Predictions for complete prompts rest on measurements of complete prompts.
TEST(ProfileLimitsOf, ReachesTheLongestPromptWherePromptsRunWhole) {
  EngineConfig config = Config("prefill-only");
  EXPECT_EQ(LimitsOf(config).max_step_tokens, 4096);
  EXPECT_EQ(LimitsOf(config).max_model_len, 4096);
  config.retention = "none";
  EXPECT_EQ(LimitsOf(config).max_step_tokens, 4096);
  config.max_num_batched_tokens = 8192;  // several prompts
  EXPECT_EQ(LimitsOf(config).max_step_tokens, 8192);
}

// Contiguous storage holds one sequence.
TEST(ProfileLimitsOf, OneRowWhereOneSequenceIsHeld) {
  EngineConfig config = Config("flow-prefill");
  EXPECT_EQ(LimitsOf(config).max_rows, 2);
  config.kv_storage = KvStorage::kContiguous;
  config.max_num_seqs = 1;
  EXPECT_EQ(LimitsOf(config).max_rows, 1);
}

TEST(ProfileLimitsOf, EndsAtTheBudgetWherePromptsAreCutIntoSteps) {
  EngineConfig config = Config("prefill-only");
  config.retention = "all";
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
