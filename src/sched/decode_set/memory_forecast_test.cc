#include "sched/decode_set/memory_forecast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace skein {
namespace {

// Computes the peak step by step.
double SimulatedPeak(double used, std::vector<GrowingRequest> requests) {
  double peak = used;
  while (!requests.empty()) {
    double now = used;
    for (GrowingRequest& request : requests) {
      if (request.left <= 0) continue;
      --request.left;
      ++request.own;
      ++now;
    }
    peak = std::max(peak, now);
    std::erase_if(requests, [&](const GrowingRequest& request) {
      if (request.left > 0) return false;
      now -= request.own;
      return true;
    });
    used = now;
  }
  return peak;
}

TEST(MemoryForecast, IsTheMostThatEverIsHeld) {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<GrowingRequest> requests;
    double used = static_cast<double>(random.Between(0, 5000));  // tokens of shared prefixes
    for (int64_t i = random.Between(0, 40); i > 0; --i) {
      requests.push_back({static_cast<double>(random.Between(1, 200)),
                          static_cast<double>(random.Between(0, 300))});
      used += requests.back().own;
    }
    const double simulated = SimulatedPeak(used, requests);
    EXPECT_DOUBLE_EQ(PeakTokens(used, requests), simulated);
  }
}

TEST(MemoryForecast, RequestsThatBeganTogetherNeedMost) {
  std::vector<GrowingRequest> together(10, {100, 50});
  EXPECT_EQ(PeakTokens(500, together), 1500);
  std::vector<GrowingRequest> staggered;
  for (int i = 0; i < 10; ++i) staggered.push_back({100.0 - 10 * i, 50.0 + 10 * i});
  EXPECT_LT(PeakTokens(950, staggered), 1100);
}

}  // namespace
}  // namespace skein
