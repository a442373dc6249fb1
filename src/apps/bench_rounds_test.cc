#include "apps/bench_rounds.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(BenchRounds, MeasuresRoundsOfEachOrder) {
  for (const char* order : {"fcfs", "srjf", "srjf-calibrated"}) {
    const auto cost = MeasureRounds(order, 100, 50);
    ASSERT_TRUE(cost.ok());
    EXPECT_GT(cost.value().mean_us, 0);
    EXPECT_GE(cost.value().p99_us, 0);
  }
  EXPECT_EQ(MeasureRounds("longest", 10, 10).status().param(), "order");
}

}  // namespace
}  // namespace skein
