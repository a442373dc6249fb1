#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace skein::testing {

// Lets allocations of a test program fail, of all threads or of one. The program also includes
// counted_allocations.h, in one source: its operator new asks Fails.
class FailingAllocations {
 public:
  // After `num_before` more allocations `num_failing` fail. `thread`: the one whose count, else
  // all.
  static void Begin(int64_t num_before, int64_t num_failing, std::thread::id thread = {}) {
    thread_ = thread;
    num_failed_ = 0;
    num_failing_ = num_failing;
    num_before_ = num_before;
    on_ = true;
  }
  // Returns how many have failed since Begin, 0 for a second call.
  static int64_t End() {
    on_ = false;
    return num_failed_.exchange(0);
  }

  static bool Fails() {
    if (!on_) return false;
    const std::thread::id thread = thread_;
    if (thread != std::thread::id() && thread != std::this_thread::get_id()) return false;
    if (num_before_.fetch_sub(1) > 0 || num_failing_.fetch_sub(1) <= 0) return false;
    ++num_failed_;
    return true;
  }

 private:
  static inline std::atomic<bool> on_{false};
  static inline std::atomic<std::thread::id> thread_{};
  static inline std::atomic<int64_t> num_before_{0}, num_failing_{0}, num_failed_{0};
};

}  // namespace skein::testing
