#include <gtest/gtest.h>

#include <cstring>

#include "base/check.h"
#include "harness.h"
#include "testing/scheduler_load.h"

namespace skein::fuzz {

// One byte: the number of requests, few as a rule: the cost of a run grows with its square. Eight:
// the seed of a load, which replays it. The device is lost, steps find no memory and the clock
// jumps, where the number is odd.
void FuzzScheduler(Bytes data) {
  uint64_t seed = 0;
  if (data.size() < 1 + sizeof(seed)) return;
  std::memcpy(&seed, data.data() + 1, sizeof(seed));
  const int32_t num_requests = 1 + data[0] % (data[0] < 250 ? 10 : 40);
  const auto faults = num_requests % 2 == 1 ? testing::Faults::kInjected : testing::Faults::kNone;
  const bool before = ::testing::Test::HasFailure();
  testing::RunRandomLoad(seed, num_requests, faults);
  SKEIN_CHECK(before || !::testing::Test::HasFailure());
}

}  // namespace skein::fuzz
