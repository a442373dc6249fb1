#include "sched/decode_set/dynamic_batch.h"

#include <gtest/gtest.h>

#include <cmath>

namespace skein {
namespace {

TEST(DynamicBatch, MemoryHoldsSoManyOfTheMeanSize) {
  DynamicBatch batch(1000, 500, 0);
  EXPECT_EQ(batch.MaxRunning(), 500);  // before any request has ended
  for (int i = 0; i < 10; ++i) batch.ObserveRequest(20);
  EXPECT_EQ(batch.MaxRunning(), 50);
}

TEST(DynamicBatch, RequestsOfManySizesNeedAMargin) {
  DynamicBatch batch(1000, 500, 0);
  for (int i = 0; i < 1000; ++i) batch.ObserveRequest(i % 2 == 0 ? 10 : 30);
  const double limit = batch.MaxRunning();
  EXPECT_LT(limit, 50);
  EXPECT_LE(20 * limit + 1.645 * 10.01 * std::sqrt(limit), 1000);
  EXPECT_GT(20 * (limit + 1) + 1.645 * 10 * std::sqrt(limit + 1), 1000);
}

// Steps take 1 ms, and 0.5 ms for each row: 38 rows take 20 ms.
TEST(DynamicBatch, FindsTheBatchThatTakesAsLongAsAimedAt) {
  for (const int32_t most : {500, 64}) {
    DynamicBatch batch(1 << 20, most, 20'000);
    for (int step = 0; step < 400; ++step) {
      const int32_t size = batch.MaxRunning();
      batch.ObserveStep(size, 0, 1000 + 500 * size);
    }
    EXPECT_NEAR(batch.MaxRunning(), 38, 3) << most;
  }
}

TEST(DynamicBatch, StaysInItsBounds) {
  DynamicBatch slow(100, 8, 1);
  DynamicBatch fast(100, 8, 1'000'000);
  for (int step = 0; step < 200; ++step) {
    slow.ObserveStep(slow.MaxRunning(), 0, 50'000);
    fast.ObserveStep(fast.MaxRunning(), 0, 50);
    ASSERT_GE(slow.MaxRunning(), 1);
    ASSERT_LE(fast.MaxRunning(), 8);
  }
  EXPECT_LE(slow.MaxRunning(), 2);
  EXPECT_EQ(fast.MaxRunning(), 8);
}

// A batch that is small for lack of requests says nothing about larger batches.
TEST(DynamicBatch, FewRequestsDoNotLowerTheLimit) {
  DynamicBatch batch(1 << 20, 100, 20'000);
  for (int step = 0; step < 400; ++step) batch.ObserveStep(3, 0, 2500);
  EXPECT_GE(batch.MaxRunning(), 50);
}

}  // namespace
}  // namespace skein
