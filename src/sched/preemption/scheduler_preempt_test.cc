// A running prefill stops for more urgent work and goes on later.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "skein/choice_names.h"
#include "testing/preempt_steps.h"

namespace skein {
namespace {

using testing::Ids;
using testing::KnowCosts;
using Fixture = testing::PreemptFixture;

// Two prompts arrive, `id` and the next one, each more urgent than the running step. Only one
// suspended step is kept, so the step that ran first is dropped, and the last step runs.
void DropByTwo(RequestId id, Fixture* f) {
  for (const RequestId urgent : {id, id + 1}) {
    f->Arrive(urgent, 190, 9 - static_cast<int32_t>(urgent));
    EXPECT_EQ(f->Reconsider(), StepFate::kSuspended);
    EXPECT_EQ(f->Plan(), Ids{urgent});
  }
  EXPECT_EQ(f->scheduler->Stats().steps_dropped, 1u);
}

TEST(SchedulerPreempt, TheUrgentRunsFirstAndTheStepGoesOn) {
  Fixture f;
  f.Arrive(0, 150, 1);
  EXPECT_EQ(f.Plan(), Ids{0});
  const StepPlan* plan = f.plan;
  const int64_t id = f.scheduler->step_id();
  f.Arrive(1, 40, 1);  // no more urgent than request 0
  EXPECT_EQ(f.Reconsider(), StepFate::kGoesOn);
  f.Arrive(2, 40, 0);
  EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
  EXPECT_TRUE(f.scheduler->IsSuspended(id));
  EXPECT_EQ(f.Plan(), Ids{2});  // request 1 would fit, but is less urgent than the suspended step
  EXPECT_NE(f.scheduler->step_id(), id);
  f.Complete();
  EXPECT_EQ(f.Finished(), Ids{2});
  EXPECT_EQ(f.Plan(), Ids{0});
  EXPECT_EQ(f.plan, plan);
  EXPECT_EQ(f.scheduler->step_id(), id);
  EXPECT_FALSE(f.scheduler->IsSuspended(id));
  f.Complete();
  EXPECT_EQ(f.Plan(), Ids{1});
  f.Complete();
  EXPECT_EQ(f.Plan(), Ids{});
  const EngineStats stats = f.scheduler->Stats();
  EXPECT_EQ(stats.steps_preempted, 1u);
  EXPECT_EQ(stats.steps_resumed, 1u);
  EXPECT_EQ(stats.steps_dropped, 0u);
  EXPECT_EQ(stats.steps_oneshot, 3u);
  EXPECT_EQ(stats.kv_blocks_used, 0);
}

TEST(SchedulerPreempt, ByTheKeyOfAnyOrder) {
  Fixture f([](EngineConfig* config) { config->scheduler.policies.order = Order::kSrjf; });
  f.Arrive(0, 190, 0);
  EXPECT_EQ(f.Plan(), Ids{0});
  f.Arrive(1, 195, 0);
  EXPECT_EQ(f.Reconsider(), StepFate::kGoesOn);
  f.Arrive(2, 30, 0);
  EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
  EXPECT_EQ(f.Plan(), Ids{2});
}

TEST(SchedulerPreempt, NeitherWithoutASharingThatPreemptsNorWithoutBoundaries) {
  for (const Sharing sharing : {Sharing::kWhole, Sharing::kChunked, Sharing::kPreemptOp}) {
    Fixture f([&](EngineConfig* config) {
      config->scheduler.policies.sharing = sharing;
      config->scheduler.policies.granularity = Granularity::kChunk;
    });
    f.Arrive(0, 150, 1);
    f.Plan();
    f.Arrive(1, 40, 0);
    EXPECT_EQ(f.Reconsider(), StepFate::kGoesOn) << NameOf(sharing);
  }
}

// A prompt that must run in one step waits for room after its step was dropped, as a new prompt
// does. More urgent work goes first, and may leave no room.
TEST(SchedulerPreempt, WhatIsDroppedWaitsForRoomAgain) {
  Fixture f([](EngineConfig* config) {
    config->scheduler.policies.retention = Retention::kNone;
    config->scheduler.preemption.max_suspended_steps = 1;
    config->scheduler.max_num_seqs = 16;
  });
  f.Arrive(0, 390, 9);  // needs 13 blocks; a step may hold 21 blocks that are not kept
  EXPECT_EQ(f.Plan(), Ids{0});
  DropByTwo(1, &f);
  f.Complete();
  EXPECT_EQ(f.Plan(), Ids{1});
  Ids urgent;
  for (RequestId id = 3; id < 13; ++id) {
    f.Arrive(id, 10, 0);
    urgent.push_back(id);
  }
  f.Complete();
  EXPECT_EQ(f.Plan(), urgent);
  f.Complete();
  EXPECT_EQ(f.Plan(), Ids{0});
}

// A request may be admitted behind a shared prefix for a later step than the step with the prefix.
// If the prefix's step is dropped, the request must not begin behind the prefix.
TEST(SchedulerPreempt, MembersOfAPrefixThatWasDroppedBeginAnew) {
  Fixture f([](EngineConfig* config) {
    config->scheduler.policies = FindPreset("prelude")->policies;
    config->scheduler.policies.sharing = Sharing::kPreemptOp;
    config->scheduler.preemption.max_suspended_steps = 1;
    config->scheduler.num_kv_blocks = 60;
  });
  for (RequestId id : {0, 1}) {  // a step of 200 tokens has no room for both
    Request request;
    request.prompt.assign(96, 1);
    request.prompt.resize(156, static_cast<TokenId>(id + 2));
    request.generate().max_tokens = 1;
    request.priority = 9;
    f.scheduler->Arrive(id, std::move(request), ++f.now_us);
  }
  // The step computes the shared prefix and one of the requests.
  EXPECT_EQ(f.Plan().size(), 2u);
  DropByTwo(2, &f);
  f.Complete();
  EXPECT_EQ(f.Plan(), Ids{2});
  f.Complete();
  std::vector<SequenceId> computed;
  while (!f.Plan().empty()) {
    for (const PlanRow& row : std::get<OneShotPlan>(*f.plan).rows) {
      EXPECT_TRUE(row.begin == 0 || std::ranges::find(computed, row.parent) != computed.end())
          << "a row behind what is not computed";
      computed.push_back(row.sequence);
    }
    f.Complete();
  }
  EXPECT_EQ(f.scheduler->Stats().kv_blocks_used, 0);
}

// A prompt is longer than a step. More urgent work goes first between its steps, except with
// `none`.
TEST(SchedulerPreempt, BetweenTheStepsOfAPrompt) {
  for (const Granularity granularity : {Granularity::kChunk, Granularity::kNone}) {
    Fixture f([&](EngineConfig* config) { config->scheduler.policies.granularity = granularity; });
    f.Arrive(0, 350, 1);
    EXPECT_EQ(f.Plan(), Ids{0});
    f.Arrive(1, 200, 0);
    f.Complete();
    EXPECT_EQ(f.Plan().front(), granularity == Granularity::kChunk ? 1u : 0u);
  }
}

TEST(SchedulerPreempt, BeyondTheBoundTheLeastUrgentIsComputedAgain) {
  Fixture f([](EngineConfig* config) { config->scheduler.preemption.max_suspended_steps = 2; });
  std::vector<int64_t> steps;
  for (int i = 0; i < 4; ++i) {
    f.Arrive(i, 100, -i);
    if (i > 0) {
      EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
    }
    EXPECT_EQ(f.Plan(), Ids{static_cast<RequestId>(i)});
    steps.push_back(f.scheduler->step_id());
  }
  EXPECT_FALSE(f.scheduler->IsSuspended(steps[0]));  // it was dropped
  EXPECT_TRUE(f.scheduler->IsSuspended(steps[1]));
  EXPECT_TRUE(f.scheduler->IsSuspended(steps[2]));
  EXPECT_EQ(f.scheduler->Stats().steps_dropped, 1u);
  f.Complete();
  for (const RequestId next : {2, 1, 0}) {
    EXPECT_EQ(f.Plan(), Ids{next});
    if (next == 0) {
      EXPECT_EQ(f.scheduler->step_id(), 4);  // a new step
    }
    f.Complete();
  }
  EXPECT_EQ(f.Finished(), (Ids{3, 2, 1, 0}));
  EXPECT_EQ(f.Plan(), Ids{});
  EXPECT_EQ(f.scheduler->Stats().kv_blocks_used, 0);
}

TEST(SchedulerPreempt, WhatFindsNoBlocksPreemptsNothing) {
  Fixture f([](EngineConfig* config) { config->scheduler.num_kv_blocks = 13; });
  f.Arrive(0, 190, 1);  // takes 6 blocks
  f.Plan();
  f.Arrive(1, 300, 0);  // takes 10 blocks
  EXPECT_EQ(f.Reconsider(), StepFate::kGoesOn);
  f.Arrive(2, 200, 0);                           // takes 7 blocks
  EXPECT_EQ(f.Reconsider(), StepFate::kGoesOn);  // request 2 waits behind request 1
  f.scheduler->Cancel(1, 1);
  EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
  EXPECT_EQ(f.Plan(), Ids{2});
}

TEST(SchedulerPreempt, CancelledWhileSuspended) {
  Fixture f;
  f.Arrive(0, 100, 1);
  f.Arrive(1, 100, 1);
  EXPECT_EQ(f.Plan(), (Ids{0, 1}));
  const int64_t id = f.scheduler->step_id();
  f.Arrive(2, 40, 0);
  EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
  EXPECT_EQ(f.Plan(), Ids{2});
  f.scheduler->Cancel(0, 1);
  EXPECT_EQ(f.Finished(), Ids{0});
  EXPECT_TRUE(f.scheduler->IsSuspended(id));  // request 1 waits for the step
  f.Complete();
  EXPECT_EQ(f.Plan(), (Ids{0, 1}));
  f.Arrive(3, 40, 0);
  EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
  f.scheduler->Cancel(1, 1);  // now no request waits for the step
  EXPECT_FALSE(f.scheduler->IsSuspended(id));
  EXPECT_EQ(f.Plan(), Ids{3});
  EXPECT_EQ(f.scheduler->Stats().kv_blocks_used, 2);
  f.Complete();
  EXPECT_EQ(f.Plan(), Ids{});
}

TEST(SchedulerPreempt, AStepThatNobodyWaitsForIsDropped) {
  Fixture f;
  f.Arrive(0, 100, 0);
  EXPECT_EQ(f.Plan(), Ids{0});
  f.scheduler->Cancel(0, 1);
  EXPECT_EQ(f.Reconsider(), StepFate::kDropped);
  EXPECT_EQ(f.scheduler->Stats().kv_blocks_used, 0);
  EXPECT_EQ(f.Plan(), Ids{});
  EXPECT_TRUE(f.scheduler->empty());
}

TEST(SchedulerPreempt, NoStepIsSuspendedForEver) {
  Fixture f([](EngineConfig* config) { config->scheduler.preemption.max_suspended_us = 5000; });
  f.Arrive(0, 100, 1);
  EXPECT_EQ(f.Plan(), Ids{0});
  f.Arrive(1, 40, 0);
  EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
  EXPECT_EQ(f.Plan(), Ids{1});
  f.Arrive(2, 40, 0);
  f.now_us += 5000;
  f.Complete();
  EXPECT_EQ(f.Plan(), Ids{0});  // the first step has reached its bound
  EXPECT_EQ(f.Reconsider(), StepFate::kGoesOn);
  f.Complete();
  EXPECT_EQ(f.Plan(), Ids{2});
}

// The running step stops when a suspended step reaches its bound. No other step stops that one
// again, since it has used up its bound.
TEST(SchedulerPreempt, TheEndOfABoundBeginsARound) {
  Fixture f([](EngineConfig* config) { config->scheduler.preemption.max_suspended_us = 5000; });
  f.Arrive(0, 100, 1);
  EXPECT_EQ(f.Plan(), Ids{0});
  EXPECT_EQ(f.scheduler->NextRoundUs(), std::nullopt);
  f.Arrive(1, 150, 0);
  EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
  const TimeUs end_us = f.now_us + 5000;
  EXPECT_EQ(f.Plan(), Ids{1});
  EXPECT_EQ(f.scheduler->NextRoundUs(), end_us);
  f.now_us = end_us - 2;
  EXPECT_EQ(f.Reconsider(), StepFate::kGoesOn);
  EXPECT_EQ(f.scheduler->NextRoundUs(), end_us);
  EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
  EXPECT_EQ(f.Plan(), Ids{0});
  EXPECT_EQ(f.scheduler->NextRoundUs(), std::nullopt);
  f.now_us += 10'000;  // beyond the bound of the other step
  EXPECT_EQ(f.Reconsider(), StepFate::kGoesOn);
  EXPECT_EQ(f.scheduler->NextRoundUs(), std::nullopt);
  f.Complete();
  EXPECT_EQ(f.Plan(), Ids{1});
}

// Nor is a request suspended, dropped and computed again for ever.
TEST(SchedulerPreempt, WhatIsDroppedKeepsTheTimeItWasSuspended) {
  Fixture f([](EngineConfig* config) {
    config->scheduler.preemption.max_suspended_steps = 1;
    config->scheduler.preemption.max_suspended_us = 5000;
  });
  f.Arrive(0, 100, 2);
  RequestId next = 1;
  for (int wave = 0; wave < 2; ++wave, next += 2) {
    EXPECT_EQ(f.Plan(), Ids{0});
    f.Arrive(next, 40, 1);
    EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
    EXPECT_EQ(f.Plan(), Ids{next});
    f.now_us += 2000;
    f.Arrive(next + 1, 40, 0);
    EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
    EXPECT_EQ(f.Plan(), Ids{next + 1});
    f.Complete();
    EXPECT_EQ(f.Plan(), Ids{next});
    f.Complete();
  }
  EXPECT_EQ(f.scheduler->Stats().steps_dropped, 2u);
  EXPECT_EQ(f.Plan(), Ids{0});
  f.Arrive(next, 40, 1);
  EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
  EXPECT_EQ(f.Plan(), Ids{next});
  f.now_us += 2000;  // suspended for 6 ms in all
  EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
  EXPECT_EQ(f.Plan(), Ids{0});
  f.Arrive(next + 1, 40, 0);
  EXPECT_EQ(f.Reconsider(), StepFate::kGoesOn);
  (void)f.Finished();  // the other requests
  f.Complete();
  EXPECT_EQ(f.Finished(), Ids{0});
}

// Requests that decode take a token in each new step. Their prompts may stop like other prompts.
TEST(SchedulerPreempt, DecodesJoinNewSteps) {
  Fixture f;
  f.Arrive(0, 40, 1, 8);
  EXPECT_EQ(f.Plan(), Ids{0});
  f.Complete();
  f.Arrive(1, 100, 1, 4);
  EXPECT_EQ(f.Plan(), (Ids{1, 0}));
  f.Arrive(2, 40, 0);
  EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
  EXPECT_EQ(f.Plan(), Ids{2});  // request 0's next token is in the suspended step
  f.Complete();
  EXPECT_EQ(f.Plan(), (Ids{1, 0}));
  f.Complete();
  EXPECT_EQ(f.Plan(), (Ids{0, 1}));
}

// By the formula, the request with the latest deadline goes first among those without slack. But it
// stops no running step.
TEST(SchedulerPreempt, LateRequestsDoNotStopOneAnother) {
  Fixture f([](EngineConfig* config) {
    KnowCosts(config);
    config->scheduler.policies.order = Order::kSlackEdf;
  });
  f.slo_ttft_us = 50'000;
  f.Arrive(0, 150, 0);  // takes 160 ms
  EXPECT_EQ(f.Plan(), Ids{0});
  f.slo_ttft_us = 60'000;
  f.Arrive(1, 100, 0);  // takes 110 ms
  EXPECT_EQ(f.Reconsider(), StepFate::kGoesOn);
  f.slo_ttft_us = 50'000;
  f.Arrive(2, 10, 0);  // takes 20 ms
  EXPECT_EQ(f.Reconsider(), StepFate::kSuspended);
  EXPECT_EQ(f.Plan(), (Ids{2, 1}));
  f.now_us += 120'000;
  f.Complete();
  EXPECT_EQ(f.Plan(), Ids{0});
}

// Prompts leave blocks free for preempting requests, which thus never wait for blocks of prompts.
TEST(SchedulerPreempt, AnExpressArenaIsLeftFree) {
  const auto make = [](int32_t express_tokens) {
    return Fixture([&](EngineConfig* config) {
      config->scheduler.num_kv_blocks = 40;
      config->scheduler.max_num_batched_tokens = 2000;
      config->scheduler.max_model_len = 1300;
      config->scheduler.preemption.express_tokens = express_tokens;
    });
  };
  for (const int32_t express_tokens : {0, 64}) {
    Fixture f = make(express_tokens);
    f.Arrive(0, 640, 1);  // takes 20 blocks
    f.Arrive(1, 608, 1);  // 19 blocks, which leaves one free
    EXPECT_EQ(f.Plan(), express_tokens == 0 ? (Ids{0, 1}) : Ids{0});
    f.Arrive(2, 64, 0);  // takes 2 blocks
    const StepFate fate = f.Reconsider();
    EXPECT_EQ(fate, express_tokens == 0 ? StepFate::kGoesOn : StepFate::kSuspended);
    if (fate == StepFate::kSuspended) {
      EXPECT_EQ(f.Plan(), Ids{2});
    }
  }
  // At most an eighth of the pool is kept free. A prompt that runs alone may take all of it.
  Fixture f = make(1 << 20);
  f.Arrive(0, 1280, 1);
  EXPECT_EQ(f.Plan(), Ids{0});
  f.Complete();
  f.Arrive(1, 640, 1);  // takes 20 blocks
  f.Arrive(2, 480, 1);  // 15 blocks, which leaves an eighth free
  f.Arrive(3, 30, 1);
  EXPECT_EQ(f.Plan(), (Ids{1, 2}));
}

TEST(SchedulerPreempt, StepsThatKeepStateByGranularity) {
  EngineConfig config = {.scheduler = {.policies = {}, .num_kv_blocks = 40, .max_model_len = 400}};
  Policies& policies = config.scheduler.policies;
  EXPECT_EQ(NumSteps(config.scheduler), 1);
  policies.sharing = Sharing::kPreemptLayer;
  policies.granularity = Granularity::kLayer;
  EXPECT_EQ(NumSteps(config.scheduler), 3);
  policies.granularity = Granularity::kNone;
  EXPECT_EQ(NumSteps(config.scheduler), 1);
  EXPECT_TRUE(MakeSchedulerConfig(config).ok());
  config.scheduler.preemption.max_suspended_steps = 0;
  EXPECT_EQ(MakeSchedulerConfig(config).status().param(), "max_suspended_steps");
}

}  // namespace
}  // namespace skein
