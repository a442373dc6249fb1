#include "sched/config.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "skein/choice_names.h"

namespace skein {
namespace {

EngineConfig SmallConfig(std::string_view preset) {
  return {.scheduler = {.policies = FindPreset(preset)->policies,
                        .num_kv_blocks = 40,
                        .max_model_len = 400,
                        .max_num_seqs = 4,
                        .max_num_batched_tokens = 4096}};
}

TEST(Presets, DifferAndHaveDistinctNames) {
  std::set<std::string_view> names;
  for (const Preset& preset : kPresets) {
    EXPECT_TRUE(names.insert(preset.name).second) << preset.name;
    for (const Preset& other : kPresets) {
      EXPECT_EQ(preset.policies == other.policies, preset.name == other.name)
          << preset.name << " " << other.name << ": equal ones are aliases";
    }
  }
  for (const PresetAlias& alias : kPresetAliases) {
    EXPECT_TRUE(names.insert(alias.name).second) << alias.name;
    ASSERT_NE(FindPreset(alias.preset), nullptr) << alias.name;
    EXPECT_EQ(FindPreset(alias.name), FindPreset(alias.preset));
  }
  EXPECT_EQ(FindPreset("best"), nullptr);
  EXPECT_EQ(names.size(), 16u);
  EXPECT_TRUE(ListOfPresets().starts_with("auto, prelude, chunked-fcfs (vllm-fcfs, nano-vllm), "));
}

TEST(Presets, TheDefaultIsThatOfAConfigurationThatNamesNone) {
  EXPECT_EQ(kDefaultPreset, "auto");
  EXPECT_EQ(SchedulerConfig().policies, FindPreset(kDefaultPreset)->policies);
}

TEST(MakeSchedulerConfig, ChunksAreTheTokensOfAStep) {
  EngineConfig config = SmallConfig("distserve-cp2k");
  EXPECT_EQ(MakeSchedulerConfig(config)->max_num_batched_tokens, 2048);
  EXPECT_EQ(UsualBatchedTokens(config.scheduler, 512), 2048);
  config.scheduler.max_num_batched_tokens = 2000;
  EXPECT_EQ(MakeSchedulerConfig(config).status().param(), "chunk_tokens");
  config.scheduler.policies.chunk_tokens = 3;  // fewer than max_num_seqs
  EXPECT_EQ(MakeSchedulerConfig(config).status().param(), "chunk_tokens");
}

TEST(MakeSchedulerConfig, AWholePromptTakesTheBudgetOrTheLongPromptsTokens) {
  EngineConfig config = SmallConfig("prelude");
  config.reads_whole_prompts = true;
  config.scheduler.max_num_batched_tokens = 100;
  const int32_t without = MakeSchedulerConfig(config)->max_whole_prompt_len;
  EXPECT_EQ(without, config.scheduler.max_num_batched_tokens - config.scheduler.max_num_seqs);
  config.long_prompt_tokens = without + 9;
  EXPECT_EQ(MakeSchedulerConfig(config)->max_whole_prompt_len, without + 9);
  config.long_prompt_tokens = without - 9;
  EXPECT_EQ(MakeSchedulerConfig(config)->max_whole_prompt_len, without);
  config.long_prompt_tokens = 1 << 20;
  EXPECT_EQ(MakeSchedulerConfig(config)->max_whole_prompt_len, config.scheduler.max_model_len);
}

TEST(MakeSchedulerConfig, MakingItAgainChangesNothing) {
  for (const Preset& preset : kPresets) {
    EngineConfig config = SmallConfig(preset.name);
    config.scheduler.max_num_batched_tokens = 8192;
    const SchedulerConfig once = MakeSchedulerConfig(config).value();
    config.scheduler = once;
    const SchedulerConfig twice = MakeSchedulerConfig(config).value();
    EXPECT_EQ(once.policies, twice.policies) << preset.name;
    EXPECT_EQ(once.max_num_batched_tokens, twice.max_num_batched_tokens) << preset.name;
    EXPECT_EQ(once.max_whole_prompt_len, twice.max_whole_prompt_len) << preset.name;
  }
}

TEST(MakeSchedulerConfig, NamesWhatIsOutOfRange) {
  const auto refused = [](const auto& spoil) {
    EngineConfig config = SmallConfig("prelude");
    spoil(&config.scheduler);
    return MakeSchedulerConfig(config).status().param();
  };
  EXPECT_EQ(refused([](SchedulerConfig* c) { c->deadlines.default_slo_us = 0; }), "default_slo_us");
  EXPECT_EQ(refused([](SchedulerConfig* c) { c->deadlines.max_late_us = -1; }), "max_late_us");
  EXPECT_EQ(refused([](SchedulerConfig* c) { c->deadlines.slo_batch_tokens = 0; }),
            "slo_batch_tokens");
  EXPECT_EQ(refused([](SchedulerConfig* c) { c->preemption.max_suspended_us = 0; }),
            "max_suspended_us");
  EXPECT_EQ(refused([](SchedulerConfig* c) { c->max_prefix_wait_us = -1; }), "max_prefix_wait_us");
  EXPECT_EQ(refused([](SchedulerConfig* c) { c->num_host_kv_blocks = -1; }), "num_host_kv_blocks");
  EXPECT_EQ(refused([](SchedulerConfig*) {}), "");
}

TEST(MakeSchedulerConfig, BlocksOfTheHostNeedCachedPrefixesOfBlocksAlone) {
  const auto refused = [](const auto& spoil) {
    EngineConfig config = SmallConfig("prelude");
    config.scheduler.num_host_kv_blocks = 4;
    spoil(&config);
    return MakeSchedulerConfig(config).status().param();
  };
  EXPECT_EQ(refused([](EngineConfig*) {}), "");
  const char* const name = "num_host_kv_blocks";
  EXPECT_EQ(refused([](EngineConfig* c) { c->scheduler.prefix_caching = false; }), name);
  EXPECT_EQ(refused([](EngineConfig* c) { c->scheduler.num_states = 8; }), name);
  EXPECT_EQ(refused([](EngineConfig* c) { c->reads_whole_prompts = true; }), name);
  EXPECT_EQ(refused([](EngineConfig* c) {
              c->scheduler.kv_storage = KvStorage::kContiguous;
              c->scheduler.max_num_seqs = 1;
            }),
            name);
}

}  // namespace
}  // namespace skein
