#include "cuda/executor/run_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "cuda/executor/operators/operator_slices.h"

namespace skein::cuda {
namespace {

// Gives operators of these times, and lets the device do as little as it may. Returns the most work
// and the most operators that it has had ahead of it.
struct MostAhead {
  double us = 0;
  int64_t operators = 0;
};
MostAhead Drive(const std::vector<double>& times, double ahead_us) {
  RunAhead ahead;
  ahead.set_ahead_us(ahead_us);
  MostAhead most;
  size_t done = 0;
  double us = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    us += times[i];
    most.us = std::max(most.us, us);
    most.operators = std::max(most.operators, static_cast<int64_t>(i + 1 - done));
    if (!ahead.Add(times[i])) continue;
    ahead.AddMark(static_cast<int64_t>(i));
    while (const std::optional<int64_t> mark = ahead.PopExcess()) {
      for (; static_cast<int64_t>(done) <= *mark; ++done) us -= times[done];
    }
  }
  EXPECT_FALSE(ahead.empty());
  ahead.Clear();
  EXPECT_TRUE(ahead.empty());
  return most;
}

TEST(RunAhead, ShortOperatorsShareAMark) {
  const MostAhead most = Drive(std::vector<double>(1000, 5), kAheadUs);
  EXPECT_GT(most.operators, 90);
  EXPECT_LE(most.us, kAheadUs * 4 / 3 + 5);
}

TEST(RunAhead, MarksComeAfterSoManyOperatorsAtLeast) {
  RunAhead ahead;
  for (int32_t i = 1; i < kMostOperatorsPerMark; ++i) EXPECT_FALSE(ahead.Add(0.01));
  EXPECT_TRUE(ahead.Add(0.01));
}

TEST(RunAhead, TwoLongOperatorsAreAheadAtMost) {
  EXPECT_EQ(Drive(std::vector<double>(20, kSliceUs), kAheadUs).operators, 2);
  EXPECT_EQ(Drive(std::vector<double>(20, 5), 0).operators, 2);
}

TEST(RunAhead, TheWorkAheadIsBoundedInAnyOrder) {
  std::vector<double> times;
  for (int32_t i = 0; i < 2000; ++i) times.push_back(i * 7919 % 751);
  EXPECT_LE(Drive(times, kAheadUs).us, 2 * (kSliceUs + kAheadUs / 3));
}

}  // namespace
}  // namespace skein::cuda
