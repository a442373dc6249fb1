#include "apps/host/scheduling_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <sstream>

namespace skein {
namespace {

using ::testing::HasSubstr;

// The configuration that a command line gives; a usage error becomes a Status with its message.
Result<SchedulerConfig> ConfigBehind(const std::string& command_line) {
  CLI::App app;
  SchedulingOptions options;
  AddPresetOption(&app, "--scheduling", &options);
  AddChoiceOptions(&app, &options);
  try {
    app.parse(command_line);
  } catch (const CLI::ParseError& error) {
    return Status(StatusCode::kInvalidArgument, error.what());
  }
  return SchedulerConfigOf(options);
}

std::string Refusal(const std::string& command_line) {
  return ConfigBehind(command_line).status().message();
}

TEST(SchedulingOptions, WithoutAnyTheDefaultPreset) {
  const SchedulerConfig config = ConfigBehind("").value();
  EXPECT_EQ(config.policies, FindPreset("auto")->policies);
  EXPECT_EQ(config.preemption.max_suspended_us, 10'000'000);
}

TEST(SchedulingOptions, ChoicesReplaceThoseOfThePreset) {
  const SchedulerConfig preset = ConfigBehind("--scheduling prefill-only").value();
  EXPECT_EQ(preset.policies.execution, Execution::kHybrid);
  EXPECT_EQ(preset.policies.retention, Retention::kPrefix);
  const SchedulerConfig config =
      ConfigBehind(
          "--scheduling prefill-only --execution plain --retention none --order srjf "
          "--batching single --decode-set static --chunk-tokens 99 --jct model --aging 0.5 "
          "--default-slo-ttft-ms 7 --max-late-ms 8 --slo-batch-tokens 9")
          .value();
  EXPECT_EQ(config.policies, (Policies{.order = Order::kSrjf,
                                       .batching = Batching::kSingle,
                                       .sharing = Sharing::kWhole,
                                       .decode_set = DecodeSet::kStatic,
                                       .execution = Execution::kPlain,
                                       .retention = Retention::kNone,
                                       .max_decode_wait_us = 1'000'000,
                                       .chunk_tokens = 99}));
  EXPECT_EQ(config.jct.by, Jct::kModel);
  EXPECT_EQ(config.jct.aging, 0.5);
  EXPECT_EQ(config.deadlines.default_slo_us, 7000);
  EXPECT_EQ(config.deadlines.max_late_us, 8000);
  EXPECT_EQ(config.deadlines.slo_batch_tokens, 9);
}

TEST(SchedulingOptions, ASharingSaysTheGranularityUnlessOneIsNamed) {
  const auto granularity = [](const std::string& line) {
    return ConfigBehind(line).value().policies.granularity;
  };
  EXPECT_EQ(granularity("--sharing preempt-layer"), Granularity::kLayer);
  EXPECT_EQ(granularity("--sharing preempt-op"), Granularity::kOpTile);
  EXPECT_EQ(granularity("--scheduling layer-level --sharing preempt-op"), Granularity::kOpTile);
  EXPECT_EQ(granularity("--scheduling flow-prefill --preempt-granularity op"), Granularity::kOp);
  EXPECT_EQ(Refusal("--sharing chunked --preempt-granularity op"),
            "preempt_granularity needs a sharing that preempts: preempt-op or preempt-layer");
}

TEST(SchedulingOptions, AWrongValueIsNamedWithTheOptionAndWhatIsAllowed) {
  EXPECT_THAT(Refusal("--order shortest"),
              HasSubstr("--order: is 'shortest', must be one of: fcfs, fair, srjf"));
  EXPECT_THAT(Refusal("--batching all"), HasSubstr("single, saturate, budget, slo-aware"));
  EXPECT_THAT(Refusal("--jct x"), HasSubstr("proxy, model"));
  EXPECT_THAT(Refusal("--execution fast"), HasSubstr("--execution: is 'fast'"));
  EXPECT_THAT(Refusal("--retention some"), HasSubstr("all, prefix, value, none"));
  EXPECT_THAT(Refusal("--sharing some"), HasSubstr("whole, chunked, preempt-layer, preempt-op"));
  EXPECT_THAT(Refusal("--preempt-granularity tile"), HasSubstr("op-tile, op, layer, chunk, none"));
  EXPECT_THAT(Refusal("--decode-steps some"), HasSubstr("by-cost, own, mixed"));
  EXPECT_THAT(Refusal("--decode-set herd"), HasSubstr("static, fill, prefix-homogeneous, dynamic"));
  EXPECT_THAT(Refusal("--stop-rule often"), HasSubstr("never, heuristic, bandit, q-learning"));
  EXPECT_THAT(Refusal("--scheduling best"),
              HasSubstr("--scheduling: is 'best', must be one of: auto, prelude"));
  EXPECT_THAT(Refusal("--scheduling preludde"), HasSubstr("; did you mean 'prelude'?"));
  EXPECT_THAT(Refusal("--max-suspended-ms 0"), HasSubstr("--max-suspended-ms"));
  EXPECT_EQ(Refusal("--decode-set prefix-homogeneous --stop-constants max-lost=64,exploration=-1"),
            "stop_constants: exploration is '-1', must be a number in [0, 100]");
}

TEST(SchedulingOptions, ChoicesWithoutEffectAreRefused) {
  for (const std::string set : {"static", "fill", "dynamic"}) {
    const std::string line = "--decode-set " + set;
    EXPECT_EQ(Refusal(line + " --stop-rule heuristic"),
              "stop_rule needs decode_set prefix-homogeneous");
    EXPECT_EQ(Refusal(line + " --stop-constants max-lost=64"),
              "stop_constants needs decode_set prefix-homogeneous");
  }
  const SchedulerConfig config = ConfigBehind(
                                     "--scheduling feather --stop-rule heuristic "
                                     "--stop-constants max-lost=64 --stop-seed 5")
                                     .value();
  EXPECT_EQ(config.prefix_groups.stop.rule, StopRule::kHeuristic);
  EXPECT_EQ(config.prefix_groups.stop.max_lost_tokens, 64);
  EXPECT_EQ(config.prefix_groups.stop.seed, 5u);
}

}  // namespace
}  // namespace skein
