#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace skein {

// Threads for tasks that would delay a connection's thread. Tasks are classed by the bytes that
// they work on:
//
//   class          0           1           2         3
//   bytes       < 256 KiB    < 1 MiB    < 4 MiB    more
//
// Tasks of a lower class go first. Tasks above class 0 never occupy the last thread. They run in
// slices (base/interrupt/work_pause.h), and between two slices they make way: the waiting tasks of
// lower classes run on their thread. So a short task waits for short tasks and at most one slice,
// whatever the number of long tasks and threads. Thread-safe.
class WorkQueue {
 public:
  explicit WorkQueue(int num_threads);
  ~WorkQueue();  // calls Stop
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // `task` must not throw.
  void Post(size_t num_bytes, std::function<void()> task);
  // Drops tasks that have not begun, and waits for running ones, which MayGoOn tells to end.
  void Stop();

 private:
  class Pause;
  using Task = std::function<void()>;

  static constexpr size_t kClassEnds[] = {256 << 10, 1 << 20, 4 << 20};
  static constexpr size_t kNumClasses = std::size(kClassEnds) + 1;
  static constexpr uint32_t kStopped = 1U << 31;

  static size_t ClassOf(size_t num_bytes);
  void Run();
  bool CanStart() const;
  // Takes the first task of the lowest class. REQUIRES: mutex_ is held, and a task waits.
  Task Take(size_t* task_class);
  void RunTask(size_t task_class, Task task);
  // Runs tasks below `task_class`, at most as many as wait now. Returns false once stopped.
  bool MakeWay(size_t task_class);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<std::deque<Task>, kNumClasses> tasks_;  // guarded by mutex_
  size_t num_long_running_ = 0;                      // guarded by mutex_
  // Bit i: tasks of class i wait; kStopped. Written under mutex_, read without it.
  std::atomic<uint32_t> state_{0};
  size_t num_long_max_;
  std::vector<std::thread> threads_;
};

}  // namespace skein
