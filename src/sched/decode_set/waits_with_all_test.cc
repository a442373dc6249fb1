#include "sched/decode_set/waits_with_all.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "base/random.h"

namespace skein {
namespace {

constexpr TimeUs kSecond = 1'000'000;

TEST(WaitsWithAll, PredictsTheWaitOfThoseWithoutASlot) {
  const WaitsWithAll::Load load = {.max_rows = 2, .output_steps = 10, .step = {1, 0}};
  WaitsWithAll waits;
  waits.Begin(/*waited_s=*/0, 0);
  for (int i = 0; i < 5; ++i) waits.Arrive(0);
  waits.Advance(load, kSecond);
  EXPECT_NEAR(waits.longest_s(), 20, 1e-3);  // two rows after two others
  for (int i = 0; i < 2; ++i) waits.Arrive(kSecond);
  waits.Advance(load, 2 * kSecond);
  EXPECT_NEAR(waits.longest_s(), 29, 1e-3);
  waits.Advance(load, 100 * kSecond);
  EXPECT_NEAR(waits.longest_s(), 29, 1e-3);
  waits.Begin(/*waited_s=*/3, 0);
  waits.Advance(load, kSecond);
  EXPECT_DOUBLE_EQ(waits.longest_s(), 3);
}

// Rows of the batch at the beginning end when they say, and a step of more rows is longer.
TEST(WaitsWithAll, StepsTakeTheTimeOfTheirRows) {
  const WaitsWithAll::Load load = {.max_rows = 2, .output_steps = 10, .step = {1, 2}};
  WaitsWithAll waits;
  waits.Begin(0, 0);
  waits.AddRow(2);
  waits.AddRow(4);
  waits.Arrive(0);
  waits.Advance(load, 1);
  EXPECT_NEAR(waits.longest_s(), 2 * 5, 1e-3);
}

// Against a batch that goes on step by step.
TEST(WaitsWithAll, AgreesWithEachStep) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    const WaitsWithAll::Load load = {.max_rows = static_cast<int32_t>(random.Between(1, 6)),
                                     .output_steps = static_cast<double>(random.Between(1, 9)),
                                     .step = {1, 0}};
    WaitsWithAll waits;
    waits.Begin(0, 0);
    std::deque<int> line;
    std::vector<int> ends;
    int longest = 0;
    for (int now = 0; now < 4000; ++now) {
      std::erase(ends, now);
      if (now < 200 && random.OneIn(2)) {
        line.push_back(now);
        waits.Arrive(now * kSecond);
      }
      while (!line.empty() && std::ssize(ends) < load.max_rows) {
        longest = std::max(longest, now - line.front());
        line.pop_front();
        ends.push_back(now + static_cast<int>(load.output_steps));
      }
      if (now == 150) waits.Advance(load, now * kSecond);
    }
    waits.Advance(load, 4000 * kSecond);
    EXPECT_NEAR(waits.longest_s(), longest, 1e-3) << "seed " << seed;
  }
}

}  // namespace
}  // namespace skein
