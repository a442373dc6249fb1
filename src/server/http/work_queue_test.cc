#include "server/http/work_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

#include "base/interrupt/work_pause.h"

namespace skein {
namespace {

constexpr size_t kShortBytes = 0, kMediumBytes = 300 << 10, kLongBytes = 10 << 20;  // bytes

TEST(WorkQueue, LongTasksLeaveAThreadForShortOnes) {
  WorkQueue queue(2);
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::atomic<int> num_long{0};
  for (int i = 0; i < 6; ++i) {
    queue.Post(kLongBytes, [&] {
      ++num_long;
      released.wait();
    });
  }
  for (int i = 0; i < 3; ++i) {
    std::promise<void> done;
    queue.Post(kShortBytes, [&] { done.set_value(); });
    ASSERT_EQ(done.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  }
  EXPECT_LE(num_long, 1);
  release.set_value();
  std::promise<void> last;
  queue.Post(kLongBytes, [&] { last.set_value(); });
  last.get_future().wait();
  EXPECT_EQ(num_long, 6);
}

TEST(WorkQueue, OneThreadDoesBoth) {
  WorkQueue queue(1);
  std::promise<void> release, done;
  std::vector<int> order;
  queue.Post(kLongBytes, [&] { release.get_future().wait(); });
  queue.Post(kLongBytes, [&] {
    order.push_back(1);
    done.set_value();
  });
  queue.Post(kShortBytes, [&] { order.push_back(0); });
  release.set_value();
  done.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{0, 1}));
}

// Waits, slice by slice, until `done`. Returns false if the task is to end.
bool WaitInSlices(const std::atomic<bool>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!done && std::chrono::steady_clock::now() < end) {
    if (!MayGoOn()) return false;
    std::this_thread::yield();
  }
  EXPECT_TRUE(done);
  return true;
}

TEST(WorkQueue, LongTasksMakeWayBetweenSlices) {
  for (const int num_threads : {1, 2, 3}) {
    WorkQueue queue(num_threads);
    std::atomic<bool> medium_done{false}, short_done{false};
    std::atomic<int> num_long{0};
    for (int i = 0; i < 6; ++i) {
      queue.Post(kLongBytes, [&] {
        WaitInSlices(medium_done);
        ++num_long;
      });
    }
    // Each waits for the next shorter one, and no thread is free for it.
    queue.Post(kMediumBytes, [&] {
      WaitInSlices(short_done);
      EXPECT_EQ(num_long, 0);
      medium_done = true;
    });
    queue.Post(kShortBytes, [&] { short_done = true; });
    std::promise<void> last;
    queue.Post(kLongBytes, [&] { last.set_value(); });
    last.get_future().wait();
    EXPECT_TRUE(short_done);
    EXPECT_TRUE(medium_done);
  }
}

TEST(WorkQueue, TasksOfOneClassDoNotInterruptEachOther) {
  WorkQueue queue(1);
  std::promise<void> posted, done;
  std::vector<int> order;
  queue.Post(kLongBytes, [&] {
    posted.get_future().wait();
    EXPECT_TRUE(MayGoOn());
    order.push_back(0);
  });
  queue.Post(kLongBytes, [&] {
    order.push_back(1);
    done.set_value();
  });
  posted.set_value();
  done.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{0, 1}));
}

TEST(WorkQueue, StopTellsRunningTasksToEnd) {
  WorkQueue queue(2);
  std::promise<void> begun[2];
  std::atomic<bool> never{false};
  std::atomic<int> num_ended{0};
  for (const size_t bytes : {kShortBytes, kLongBytes}) {
    queue.Post(bytes, [&, bytes] {
      begun[bytes == kLongBytes].set_value();
      if (!WaitInSlices(never)) ++num_ended;
    });
  }
  for (std::promise<void>& task : begun) task.get_future().wait();
  queue.Stop();
  EXPECT_EQ(num_ended, 2);
}

TEST(WorkQueue, StopDropsWhatHasNotBegun) {
  std::atomic<int> num_run{0};
  WorkQueue queue(1);
  std::promise<void> begun, release;
  queue.Post(kShortBytes, [&] {
    begun.set_value();
    release.get_future().wait();
    ++num_run;
  });
  begun.get_future().wait();
  for (int i = 0; i < 5; ++i) queue.Post(kShortBytes, [&] { ++num_run; });
  std::thread stopper([&] { queue.Stop(); });
  release.set_value();
  stopper.join();
  queue.Post(kShortBytes, [&] { ++num_run; });
  EXPECT_GE(num_run, 1);
  EXPECT_LE(num_run, 6);
}

}  // namespace
}  // namespace skein
