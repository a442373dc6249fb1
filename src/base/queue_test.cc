#include "base/queue.h"

#include <gtest/gtest.h>

#include <thread>

namespace skein {
namespace {

TEST(BoundedQueue, RefusesWhenFullAndWhenClosed) {
  BoundedQueue<int> queue(2);
  EXPECT_TRUE(queue.TryPush(1));
  EXPECT_TRUE(queue.TryPush(2));
  EXPECT_FALSE(queue.TryPush(3));
  std::vector<int> items;
  queue.Drain(&items);
  EXPECT_EQ(items, (std::vector{1, 2}));
  EXPECT_TRUE(queue.TryPush(4));
  queue.Close();
  EXPECT_FALSE(queue.TryPush(5));
  EXPECT_TRUE(queue.WaitAndDrain(&items));  // items queued before are not lost
  EXPECT_EQ(items, (std::vector{1, 2, 4}));
  EXPECT_FALSE(queue.WaitAndDrain(&items));
}

TEST(BoundedQueue, WaitsForAnItemSoLong) {
  using std::chrono::microseconds;
  BoundedQueue<int> queue(2);
  EXPECT_FALSE(queue.WaitFor(microseconds(1000)));
  EXPECT_TRUE(queue.TryPush(1));
  EXPECT_TRUE(queue.WaitFor(microseconds(0)));
  std::vector<int> items;
  queue.Drain(&items);
  EXPECT_EQ(items, (std::vector{1}));  // it took nothing
  EXPECT_FALSE(queue.WaitFor(microseconds(0)));
  std::thread producer([&queue] { queue.Close(); });
  EXPECT_TRUE(queue.WaitFor(microseconds(60'000'000)));
  producer.join();
}

TEST(BoundedQueue, KeepsEachProducersOrder) {
  constexpr int kProducers = 3, kItems = 1000;
  BoundedQueue<std::pair<int, int>> queue(16);
  std::vector<std::thread> producers;
  for (int producer = 0; producer < kProducers; ++producer) {
    producers.emplace_back([&queue, producer] {
      for (int i = 0; i < kItems; ++i) {
        while (!queue.TryPush({producer, i})) std::this_thread::yield();
      }
    });
  }
  std::vector<int> next(kProducers);
  int received = 0;
  std::vector<std::pair<int, int>> items;
  while (received < kProducers * kItems) {
    items.clear();
    ASSERT_TRUE(queue.WaitAndDrain(&items));
    EXPECT_LE(items.size(), 16u);
    for (const auto& [producer, i] : items) EXPECT_EQ(i, next[producer]++);
    received += static_cast<int>(items.size());
  }
  for (std::thread& producer : producers) producer.join();
}

}  // namespace
}  // namespace skein
