// Bounded waits in the scheduler: a request that has been there for half of its bound goes first.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sched/scheduler.h"
#include "skein/choice_names.h"
#include "testing/order_scan.h"
#include "testing/preempt_steps.h"

namespace skein {
namespace {

using testing::Letters;
using testing::MakeRequest;
using testing::PreemptFixture;
using testing::Repeated;
using testing::RunStep;

constexpr TimeUs kStepUs = 1000;
constexpr TimeUs kBoundUs = 40 * kStepUs;

// One request a step, and no cached prefix.
EngineConfig OneByOne(Order order) {
  EngineConfig config;
  config.scheduler.policies.order = order;
  config.scheduler.policies.batching = Batching::kSingle;
  config.scheduler.prefix_caching = false;
  config.scheduler.cost = {.step_us = 1, .token_us = 100};
  config.vocab_size = 1000;
  config.scheduler.max_model_len = 4096;
  config.scheduler.num_kv_blocks = 128;
  config.scheduler.max_num_batched_tokens = 4096;
  return config;
}

// A request that the order dislikes arrives first; a step later, and in each further step, one that
// the order prefers. Returns the time at which the first one runs; 0: not within 200 steps.
TimeUs WaitOfTheDisliked(Order order, TimeUs bound_us, const Request& disliked,
                         const Request& preferred) {
  Scheduler scheduler(MakeSchedulerConfig(OneByOne(order)).value());
  scheduler.set_max_wait_us(bound_us);
  TimeUs now_us = kStepUs;
  scheduler.Arrive(1000, disliked, now_us);
  for (RequestId id = 0; id < 200; ++id) {
    scheduler.Arrive(id, preferred, now_us);
    const std::vector<RequestId> step = RunStep(&scheduler, &now_us, kStepUs);
    if (step == std::vector<RequestId>{1000}) return now_us - 2 * kStepUs;
  }
  return 0;
}

// The order prefers short prompts.
TEST(Pressing, AnOrderKeepsNoRequestWaitingBeyondItsBound) {
  const Request late = MakeRequest(Letters{Repeated(60, 'x')});
  const Request soon = MakeRequest(Letters{"y"});
  EXPECT_EQ(WaitOfTheDisliked(Order::kSrjf, 0, late, soon), 0);
  EXPECT_EQ(WaitOfTheDisliked(Order::kSrjf, kBoundUs, late, soon), kBoundUs / 2);
  EXPECT_EQ(WaitOfTheDisliked(Order::kSrjfCalibrated, kBoundUs, late, soon), kBoundUs / 2);
  // Half of a timeout is a bound, also where others have none.
  Request impatient = late;
  impatient.timeout_us = kBoundUs;
  EXPECT_EQ(WaitOfTheDisliked(Order::kSrjf, 0, impatient, soon), kBoundUs / 4);
}

TEST(Pressing, DeadlinesAreNotBroken) {
  const Request late = MakeRequest(Letters{"x"});
  Request soon = MakeRequest(Letters{"y"});
  soon.slo_ttft_us = kBoundUs / 4;
  // Only at its due time has the request without a deadline the earliest one.
  const TimeUs waited_us = WaitOfTheDisliked(Order::kEdf, kBoundUs, late, soon);
  EXPECT_GT(waited_us, kBoundUs / 2);
  EXPECT_LE(waited_us, kBoundUs);
  // A request that names its own deadline waits for it.
  Request patient = late;
  patient.slo_ttft_us = 100 * kBoundUs;
  EXPECT_EQ(WaitOfTheDisliked(Order::kEdf, kBoundUs, patient, soon), 0);
  // So does one of a lower priority, which shifts its bound.
  Request batch = late;
  batch.priority = 8;
  EXPECT_EQ(WaitOfTheDisliked(Order::kEdf, kBoundUs, batch, soon), 0);
}

TEST(Pressing, PrioritiesAreNotBroken) {
  Request late = MakeRequest(Letters{"x"});
  late.priority = 1;
  EXPECT_EQ(WaitOfTheDisliked(Order::kFcfs, kBoundUs, late, MakeRequest(Letters{"y"})), 0);
}

// Prompts run alone, and new ones keep coming. A decode gets no token until its request presses,
// and then a share of the time.
TEST(Pressing, PromptsDoNotStarveDecodes) {
  for (const bool bounded : {false, true}) {
    PreemptFixture fixture(
        [](EngineConfig* config) { config->scheduler.policies.sharing = Sharing::kWhole; });
    if (bounded) fixture.scheduler->set_max_wait_us(kBoundUs);
    fixture.Arrive(1000, 10, 0, 30);
    fixture.Plan();
    fixture.Complete();
    const TimeUs begin_us = fixture.now_us;
    int num_decodes = 0, num_prompts = 0;
    TimeUs first_us = 0;
    for (RequestId id = 0; id < 200; ++id) {
      fixture.Arrive(id, 100, 0);
      const bool decodes = fixture.Plan() == std::vector<RequestId>{1000};
      fixture.now_us += decodes ? kStepUs / 4 : kStepUs;
      fixture.Complete();
      fixture.Finished();
      if (decodes && num_decodes++ == 0) first_us = fixture.now_us - begin_us;
      num_prompts += !decodes;
      if (num_decodes == 29) break;
    }
    if (bounded) {
      EXPECT_EQ(num_decodes, 29);
      EXPECT_GE(first_us, kBoundUs / 2);
      EXPECT_LT(first_us, kBoundUs / 2 + 3 * kStepUs);
      EXPECT_GE(num_prompts, num_decodes);
    } else {
      EXPECT_EQ(num_decodes, 0);
    }
  }
}

}  // namespace
}  // namespace skein
