// Decodes with a TPOT deadline, beside prefills that stop for them or share steps with them.

#include <gtest/gtest.h>

#include <string>

#include "skein/choice_names.h"
#include "testing/preempt_steps.h"

namespace skein {
namespace {

using testing::Ids;
using testing::KnowCosts;
using Fixture = testing::PreemptFixture;

// Complete prompts go before decodes. Under presets for service, this is limited to a bounded time.
TEST(SchedulerDecodeSteps, WholePromptsLetDecodesPassNowAndThen) {
  for (const bool bounded : {true, false}) {
    Fixture f([&](EngineConfig* config) {
      config->scheduler.policies = FindPreset(bounded ? "prefill-only" : "paged-fcfs")->policies;
    });
    f.Arrive(0, 40, 0, 8);
    EXPECT_EQ(f.Plan(), Ids{0});
    f.Complete();
    const TimeUs first_us = f.now_us;
    f.Arrive(1, 200, 0);
    f.Arrive(2, 200, 0);
    f.Arrive(3, 200, 0);
    EXPECT_EQ(f.Plan(), Ids{1});
    f.Complete();
    f.now_us = first_us + 1'000'000;
    if (bounded) {
      EXPECT_EQ(f.Plan(), Ids{0});
      f.Complete();
    }
    EXPECT_EQ(f.Plan(), Ids{2});  // the decode's bound has not passed again
  }
}

// A decode with a TPOT deadline does not join prefills: they stop for the decode when its token is
// due.
TEST(SchedulerDecodeSteps, DecodesWithADeadlineTakeStepsBetweenTickets) {
  Fixture f;
  f.slo_tpot_us = 1000;
  f.Arrive(0, 40, 1, 8);
  f.slo_tpot_us.reset();
  EXPECT_EQ(f.Plan(), Ids{0});
  f.Complete();
  EXPECT_EQ(f.scheduler->NextRoundUs(), f.now_us + 900);  // a tenth of the interval early
  const TimeUs first_us = f.now_us;
  f.Arrive(1, 150, 1);
  EXPECT_EQ(f.Plan(), Ids{1});
  EXPECT_EQ(f.Reconsider(), StepFate::kGoesOn);
  f.now_us = first_us + 900;
  EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
  EXPECT_EQ(f.Plan(), Ids{0});
  f.now_us += 400;
  f.Complete();  // the step took 401 us
  EXPECT_EQ(f.scheduler->NextRoundUs(), f.now_us + 900 - 401);
  EXPECT_EQ(f.Plan(), Ids{1});
  f.now_us += 500;
  EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
  EXPECT_EQ(f.Plan(), Ids{0});
  f.Complete();
  f.Arrive(2, 30, 0);
  EXPECT_EQ(f.Plan(), Ids{2});  // the urgent prompt in between
  f.Complete();
  EXPECT_EQ(f.Plan(), Ids{1});
  f.Complete();
  EXPECT_EQ(f.Plan(), Ids{0});  // at once, since there is nothing else to do
}

// Decode steps are short and need little memory, so they never wait for a suspended step to end.
TEST(SchedulerDecodeSteps, DecodesTakeTheirStepsHoweverManyAreSuspended) {
  Fixture f([](EngineConfig* config) { config->scheduler.preemption.max_suspended_steps = 1; });
  f.slo_tpot_us = 1000;
  f.Arrive(0, 40, 2, 8);
  f.slo_tpot_us.reset();
  EXPECT_EQ(f.Plan(), Ids{0});
  f.Complete();
  const TimeUs due_us = f.now_us + 900;
  f.Arrive(1, 150, 1);
  EXPECT_EQ(f.Plan(), Ids{1});
  f.Arrive(2, 100, 0);
  EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
  EXPECT_EQ(f.Plan(), Ids{2});
  EXPECT_EQ(f.scheduler->NextRoundUs(), due_us);
  f.now_us = due_us;
  EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
  EXPECT_EQ(f.Plan(), Ids{0});
  f.Complete();
  EXPECT_EQ(f.Plan(), Ids{2});
  f.Complete();
  EXPECT_EQ(f.Plan(), Ids{1});
  f.Complete();
  EXPECT_EQ(f.scheduler->Stats().steps_dropped, 0u);
  EXPECT_EQ(f.scheduler->Stats().steps_resumed, 2u);
}

// Prefills get half of the device, even if the TPOT deadline is short.
TEST(SchedulerDecodeSteps, DecodesLeavePrefillsHalfOfTheDevice) {
  Fixture f;
  f.slo_tpot_us = 1;
  f.Arrive(0, 40, 1, 8);
  EXPECT_EQ(f.Plan(), Ids{0});
  f.Complete();
  EXPECT_EQ(f.Plan(), Ids{0});
  f.now_us += 500;
  f.Complete();
  EXPECT_EQ(f.scheduler->NextRoundUs(), f.now_us + 501);
  f.Arrive(1, 150, 1);
  EXPECT_EQ(f.Plan(), Ids{1});
  f.now_us += 490;
  EXPECT_EQ(f.Reconsider(), StepFate::kGoesOn);
  f.now_us += 10;
  EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
}

// The prompt is prefilled in chunks, in mixed steps short enough for the decodes' TPOT deadline, if
// that costs less than stopping the prefill for decode steps.
TEST(SchedulerDecodeSteps, ChunksThatKeepTheRateOfDecodes) {
  Fixture f(KnowCosts);
  f.slo_tpot_us = 61'000;
  f.Arrive(0, 40, 1, 8);
  f.slo_tpot_us.reset();
  EXPECT_EQ(f.Plan(), Ids{0});
  f.now_us += 50'000;
  f.Complete();
  f.Arrive(1, 150, 1);
  int num_urgent = 2;
  for (const int32_t num_tokens : {49, 49, 49, 3}) {
    EXPECT_EQ(f.Plan(), (Ids{1, 0}));
    EXPECT_EQ(std::get<MixedPlan>(*f.plan).prefills[0].tokens.size(), num_tokens);
    EXPECT_EQ(f.scheduler->NextRoundUs(), std::nullopt);  // the decode's token comes with this step
    const auto urgent = static_cast<RequestId>(num_urgent++);
    f.Arrive(urgent, 10, 0);
    EXPECT_EQ(f.Reconsider(), StepFate::kGoesOn);
    f.scheduler->Cancel(urgent, f.now_us);
    f.now_us += 11'000 + 1000 * num_tokens;
    f.Complete();
  }
  EXPECT_EQ(f.Plan(), Ids{0});
}

// A prompt waits for the end of a mixed step if it can. If it cannot, it goes first, but only once,
// and only if the decodes are far enough ahead to wait.
TEST(SchedulerDecodeSteps, AMixedStepMakesWayForWhatCannotWait) {
  struct Case {
    TimeUs slo_us;
    int num_fast;  // decode tokens before the mixed step
    StepFate fate;
  };
  for (const Case& c : {Case{100'000, 4, StepFate::kGoesOn}, Case{40'000, 0, StepFate::kGoesOn},
                        Case{40'000, 4, StepFate::kSuspended}}) {
    Fixture f([](EngineConfig* config) {
      KnowCosts(config);
      config->scheduler.policies.order = Order::kSlackEdf;
    });
    f.slo_tpot_us = 61'000;
    f.Arrive(0, 40, 0, 12);
    f.slo_tpot_us.reset();
    EXPECT_EQ(f.Plan(), Ids{0});
    f.now_us += 50'000;
    f.Complete();
    for (int i = 0; i < c.num_fast; ++i) {
      EXPECT_EQ(f.Plan(), Ids{0});
      f.now_us += 11'000;
      f.Complete();
    }
    f.Arrive(1, 150, 0);
    EXPECT_EQ(f.Plan(), (Ids{1, 0}));  // 49 tokens of request 1: 60 ms
    const int64_t mixed = f.scheduler->step_id();
    f.now_us += 10'000;
    f.slo_ttft_us = c.slo_us;
    f.Arrive(2, 10, 0);  // takes 20 ms; the step needs 50 more
    EXPECT_EQ(f.Reconsider(), c.fate);
    if (c.fate == StepFate::kGoesOn) continue;
    EXPECT_EQ(f.Plan(), Ids{2});
    f.slo_ttft_us = 200'000;
    f.Arrive(3, 10, 0);
    f.now_us += 20'000;
    f.Complete();
    EXPECT_EQ(f.Plan(), (Ids{1, 0}));  // the mixed step goes on before request 3
    EXPECT_EQ(f.scheduler->step_id(), mixed);
    f.now_us += 50'000;
    f.Complete();
    EXPECT_EQ(f.Plan().front(), 3u);
  }
}

// If a step has room beside its first prompt, the next waiting prompts join.
TEST(SchedulerDecodeSteps, ShortPromptsShareAMixedStep) {
  Fixture f(KnowCosts);
  f.slo_tpot_us = 200'000;
  f.Arrive(0, 40, 1, 8);
  f.slo_tpot_us.reset();
  EXPECT_EQ(f.Plan(), Ids{0});
  f.now_us += 50'000;
  f.Complete();
  Ids all;
  for (RequestId id = 1; id <= 16; ++id) {
    f.Arrive(id, 8, 1);
    all.push_back(id);
  }
  all.push_back(0);  // the step has 129 tokens: 139 ms
  EXPECT_EQ(f.Plan(), all);
  f.now_us += 139'000;
  f.Complete();
  // As many prompts join as the TPOT deadline allows: 10 + 1 + 188 ms.
  all.clear();
  for (RequestId id = 17; id <= 40; ++id) f.Arrive(id, 8, 1);
  for (RequestId id = 17; id < 17 + 23; ++id) all.push_back(id);
  all.push_back(0);
  EXPECT_EQ(f.Plan(), all);
}

TEST(SchedulerDecodeSteps, DecodeStepsByChoice) {
  for (const DecodeSteps steps : {DecodeSteps::kOwn, DecodeSteps::kMixed, DecodeSteps::kByCost}) {
    Fixture f([&](EngineConfig* config) {
      KnowCosts(config);
      config->scheduler.preemption.decode_steps = steps;
    });
    f.slo_tpot_us = 61'000;
    f.Arrive(0, 40, 1, 8);
    f.slo_tpot_us.reset();
    f.Plan();
    f.now_us += 50'000;
    f.Complete();
    f.Arrive(1, 150, 1);
    EXPECT_EQ(f.Plan(), steps == DecodeSteps::kOwn ? Ids{1} : (Ids{1, 0})) << NameOf(steps);
  }
  EngineConfig config = {.scheduler = {.num_kv_blocks = 40, .max_model_len = 400}};
  config.scheduler.preemption.express_tokens = -1;
  EXPECT_EQ(MakeSchedulerConfig(config).status().param(), "express_tokens");
}

// A suspended step goes on as it was planned. Prompts that go before it are still computed in
// chunks.
TEST(SchedulerDecodeSteps, AMoreUrgentPromptIsMixedWhileAStepIsSuspended) {
  Fixture f(KnowCosts);
  f.Arrive(0, 150, 2);
  EXPECT_EQ(f.Plan(), Ids{0});
  const int64_t suspended = f.scheduler->step_id();
  f.slo_tpot_us = 61'000;
  f.Arrive(1, 40, 1, 8);
  f.slo_tpot_us.reset();
  EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
  EXPECT_EQ(f.Plan(), Ids{1});
  f.now_us += 50'000;
  f.Complete();
  f.Arrive(2, 100, 0);
  for (const int32_t num_tokens : {49, 49, 2}) {
    EXPECT_EQ(f.Plan(), (Ids{2, 1}));
    EXPECT_EQ(std::get<MixedPlan>(*f.plan).prefills[0].tokens.size(), num_tokens);
    f.now_us += 11'000 + 1000 * num_tokens;
    f.Complete();
  }
  EXPECT_EQ(f.Finished(), Ids{2});
  EXPECT_TRUE(f.scheduler->IsSuspended(suspended));
  EXPECT_EQ(f.Plan(), Ids{0});
  EXPECT_EQ(f.scheduler->step_id(), suspended);
}

}  // namespace
}  // namespace skein
