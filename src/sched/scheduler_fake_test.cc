// The scheduler with the fake executor: under random configurations and loads, every request must
// get the tokens that it gets alone.

#include <gtest/gtest.h>

#include <string>

#include "testing/scheduler_load.h"

namespace skein {
namespace {

// A load takes ten times as long under a sanitizer, and a sanitizer finds its errors in any load.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kNumLoads = 300;
#else
constexpr int kNumLoads = 1500;
#endif

TEST(SchedulerWithFakeExecutor, EveryRequestHasTheTokensItHasAlone) {
  testing::LoadCounts sum;
  for (uint64_t seed = 0; seed < kNumLoads; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const testing::LoadCounts counts = testing::RunRandomLoad(seed, 20);
    if (::testing::Test::HasFailure()) return;
    sum.preemptions += counts.preemptions;
    sum.shared_tokens += counts.shared_tokens;
    sum.prefix_waits += counts.prefix_waits;
    sum.suspended += counts.suspended;
    sum.dropped += counts.dropped;
  }
  // Makes sure that the loads run out of blocks, share prefixes, wait for prefixes, and stop steps.
  EXPECT_GT(sum.suspended, kNumLoads / 20);
  EXPECT_GT(sum.dropped, kNumLoads / 100);
  EXPECT_GT(sum.preemptions, kNumLoads / 2);
  EXPECT_GT(sum.shared_tokens, 10 * kNumLoads);
  EXPECT_GT(sum.prefix_waits, kNumLoads / 100);
}

// Rows of decodes were taken out of a step while they held states for snapshots (the first two); a
// request began behind a shared prefix that was not computed yet, once no one read the
// log-probabilities of its prompt any more (the last).
TEST(SchedulerWithFakeExecutor, LoadsThatOnceFailed) {
  for (const uint64_t seed : {2752, 5131, 8595}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    testing::RunRandomLoad(seed, 20);
  }
}

TEST(SchedulerWithFakeExecutor, ALostDeviceFailsItsRequestsAlone) {
  for (uint64_t seed = 0; seed < kNumLoads / 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    testing::RunRandomLoad(seed, 20, testing::Faults::kInjected);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(SchedulerWithFakeExecutor, BlocksOnTheHostHaveTheContentsThatWereWritten) {
  testing::LoadCounts sum;
  for (uint64_t seed = 0; seed < kNumLoads; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto faults = seed % 4 == 0 ? testing::Faults::kInjected : testing::Faults::kNone;
    const testing::LoadCounts counts =
        testing::RunRandomLoad(seed, 40, faults, testing::HostTierOfLoad::kOn);
    if (::testing::Test::HasFailure()) return;
    sum.saved += counts.saved;
    sum.loaded += counts.loaded;
    sum.suspended += counts.suspended;
    sum.dropped += counts.dropped;
  }
  EXPECT_GT(sum.saved, 5 * kNumLoads);
  EXPECT_GT(sum.loaded, kNumLoads);
  EXPECT_GT(sum.suspended, kNumLoads / 20);
  EXPECT_GT(sum.dropped, kNumLoads / 100);
}

}  // namespace
}  // namespace skein
