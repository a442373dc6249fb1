#include "bench/sched/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace skein {
namespace {

TEST(BenchRounds, MeasuresRoundsOfEachOrder) {
  for (const Order order : {Order::kFcfs, Order::kSrjf, Order::kSrjfCalibrated}) {
    const auto cost = MeasureRounds(order, 100, 50);
    ASSERT_TRUE(cost.ok());
    EXPECT_GT(cost.value().mean_us, 0);
    EXPECT_GE(cost.value().p99_us, 0);
  }
}

// Other programs read these members.
TEST(BenchRounds, RowsHaveTheirMembers) {
  const std::vector<int32_t> queues = {1, 20};
  const auto rows = BenchRounds(queues, 10);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  std::vector<std::pair<std::string, int32_t>> seen;
  for (const auto& row : rows.value()) {
    seen.emplace_back(row.at("order").get<std::string>(), row.at("waiting").get<int32_t>());
    EXPECT_GT(row.at("us_per_round").get<double>(), 0) << row.dump();
    EXPECT_GT(row.at("p99_us").get<double>(), 0) << row.dump();
  }
  EXPECT_THAT(seen, ::testing::ElementsAre(::testing::Pair("fcfs", 1), ::testing::Pair("fcfs", 20),
                                           ::testing::Pair("srjf", 1), ::testing::Pair("srjf", 20),
                                           ::testing::Pair("srjf-calibrated", 1),
                                           ::testing::Pair("srjf-calibrated", 20)));
}

}  // namespace
}  // namespace skein
