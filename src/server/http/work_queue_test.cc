#include "server/http/work_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

namespace skein {
namespace {

using Length = WorkQueue::Length;

TEST(WorkQueue, LongTasksLeaveAThreadForShortOnes) {
  WorkQueue queue(2);
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::atomic<int> num_long{0};
  for (int i = 0; i < 6; ++i) {
    queue.Post(Length::kLong, [&] {
      ++num_long;
      released.wait();
    });
  }
  for (int i = 0; i < 3; ++i) {
    std::promise<void> done;
    queue.Post(Length::kShort, [&] { done.set_value(); });
    ASSERT_EQ(done.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  }
  EXPECT_LE(num_long, 1);
  release.set_value();
  std::promise<void> last;
  queue.Post(Length::kLong, [&] { last.set_value(); });
  last.get_future().wait();
  EXPECT_EQ(num_long, 6);
}

TEST(WorkQueue, OneThreadDoesBoth) {
  WorkQueue queue(1);
  std::promise<void> release, done;
  std::vector<int> order;
  queue.Post(Length::kLong, [&] { release.get_future().wait(); });
  queue.Post(Length::kLong, [&] {
    order.push_back(1);
    done.set_value();
  });
  queue.Post(Length::kShort, [&] { order.push_back(0); });
  release.set_value();
  done.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{0, 1}));
}

TEST(WorkQueue, StopDropsWhatHasNotBegun) {
  std::atomic<int> num_run{0};
  WorkQueue queue(1);
  std::promise<void> begun, release;
  queue.Post(Length::kShort, [&] {
    begun.set_value();
    release.get_future().wait();
    ++num_run;
  });
  begun.get_future().wait();
  for (int i = 0; i < 5; ++i) queue.Post(Length::kShort, [&] { ++num_run; });
  std::thread stopper([&] { queue.Stop(); });
  release.set_value();
  stopper.join();
  queue.Post(Length::kShort, [&] { ++num_run; });
  EXPECT_GE(num_run, 1);
  EXPECT_LE(num_run, 6);
}

}  // namespace
}  // namespace skein
