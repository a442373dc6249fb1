#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "skein/request.h"

namespace skein {

// The most outputs that a strand handles before other work of its connection runs. The engine may
// produce outputs faster.
inline constexpr size_t kOutputsPerTurn = 256;

// Carries outputs from the engine's thread to the strand that reads them: the engine appends and
// never waits for the reader. Its size is bounded by the token budgets of the requests.
// Thread-safe.
class OutputMailbox {
 public:
  struct Item {
    size_t prompt = 0;  // index of the request in the call
    RequestOutput output;
    TimeUs received_us = 0;
  };

  // `wake` is called by a Put into an empty mailbox, on the thread of Put and without a lock.
  explicit OutputMailbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  void Put(size_t prompt, RequestOutput output) {
    const TimeUs now_us = MonotonicClock().NowUs();
    std::function<void()> wake;
    {
      std::lock_guard lock(mutex_);
      if (!wake_) return;
      items_.push_back({prompt, std::move(output), now_us});
      if (items_.size() == 1) wake = wake_;
    }
    if (wake) wake();
  }
  // Takes the oldest outputs, at most `max`. Sets *more if others are left. Then `wake` is not
  // called, and the reader must call Take again.
  std::vector<Item> Take(size_t max, bool* more) {
    std::lock_guard lock(mutex_);
    const auto count = static_cast<std::ptrdiff_t>(std::min(max, items_.size()));
    std::vector<Item> taken(std::make_move_iterator(items_.begin()),
                            std::make_move_iterator(items_.begin() + count));
    items_.erase(items_.begin(), items_.begin() + count);
    *more = !items_.empty();
    return taken;
  }
  // Drops all later outputs and releases `wake`.
  void Close() {
    std::function<void()> wake;  // destroyed after the lock is released: it may own the caller
    std::lock_guard lock(mutex_);
    wake.swap(wake_);
    items_.clear();
  }

 private:
  std::mutex mutex_;
  std::deque<Item> items_;
  std::function<void()> wake_;
};

}  // namespace skein
