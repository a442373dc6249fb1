#include "base/interrupt/alarm.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

namespace skein {
namespace {

void WaitFor(const std::atomic<int>& value, int wanted) {
  for (int i = 0; i < 10'000 && value < wanted; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(value, wanted);
}

TEST(Alarm, RingsOnceForEachMomentAndNotBefore) {
  MonotonicClock clock;
  std::atomic<int> rings = 0;
  std::atomic<TimeUs> rang_us = 0;
  Alarm alarm(&clock, [&] {
    rang_us = clock.NowUs();
    ++rings;
  });
  for (int i = 1; i <= 3; ++i) {
    const TimeUs at_us = clock.NowUs() + 3000;
    alarm.Set(at_us);
    WaitFor(rings, i);
    EXPECT_GE(rang_us, at_us);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(rings, 3);
}

TEST(Alarm, AMomentCanBeReplaced) {
  MonotonicClock clock;
  std::atomic<int> rings = 0;
  Alarm alarm(&clock, [&] { ++rings; });
  alarm.Set(clock.NowUs() + 3'600'000'000);
  alarm.Set(clock.NowUs() + 1000);  // earlier than the first time
  WaitFor(rings, 1);
  alarm.Set(clock.NowUs() + 3'600'000'000);
  alarm.Set(Alarm::kNever);
  alarm.Set(clock.NowUs() - 1);
  WaitFor(rings, 2);
}

}  // namespace
}  // namespace skein
