#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace skein {

// Threads for tasks that would delay a connection's thread. Short tasks and long tasks have a queue
// each. Long tasks never occupy the last thread, so that short tasks wait only for short tasks. A
// single thread runs both kinds, short tasks first. Thread-safe.
class WorkQueue {
 public:
  enum class Length { kShort, kLong };

  explicit WorkQueue(int num_threads);
  ~WorkQueue();  // calls Stop
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // `task` must not throw.
  void Post(Length length, std::function<void()> task);
  // Drops tasks that have not begun and waits for running ones.
  void Stop();

 private:
  void Run();
  bool MayTakeLong() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> short_, long_;  // guarded by mutex_
  size_t num_long_running_ = 0;                     // guarded by mutex_
  bool stopped_ = false;                            // guarded by mutex_
  size_t num_long_max_;
  std::vector<std::thread> threads_;
};

}  // namespace skein
