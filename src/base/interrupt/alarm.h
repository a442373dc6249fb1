#pragma once

#include <condition_variable>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>

#include "base/clock.h"

namespace skein {

// Calls `ring` once for each time that is set. The calls run on a thread of the alarm, which sleeps
// in between. A call may come a little late. A time that was replaced may still ring. Any thread
// may call Set.
class Alarm {
 public:
  static constexpr TimeUs kNever = std::numeric_limits<TimeUs>::max();

  // `clock` runs in real time and outlives the alarm.
  Alarm(const Clock* clock, std::function<void()> ring);
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Replaces the time. Wakes the alarm's thread only if the new time is earlier than the thread's
  // next wake-up.
  void Set(TimeUs at_us);

 private:
  void Run();

  const Clock* const clock_;
  const std::function<void()> ring_;
  std::mutex mutex_;
  std::condition_variable changed_;
  TimeUs at_us_ = kNever;    // guarded by mutex_
  TimeUs wake_us_ = kNever;  // when the thread will wake by itself; guarded by mutex_
  bool quit_ = false;        // guarded by mutex_
  std::thread thread_;
};

}  // namespace skein
