#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"

namespace skein {

// A bounded queue from many producers to one consumer. The items of one producer stay in order. The
// consumer takes all items at once, and sleeps while the queue is empty.
template <typename T>
class BoundedQueue {
 public:
  // REQUIRES: capacity > 0.
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) { SKEIN_CHECK(capacity > 0); }

  // Any thread. Returns false and leaves `item` unchanged if the queue is full or closed.
  bool TryPush(T&& item) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(item));
    }
    not_empty_.notify_one();
    return true;
  }

  // Any thread. Ends the consumer's wait; later pushes return false.
  void Close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    not_empty_.notify_all();
  }

  // Consumer: appends all items to `*out` without waiting.
  void Drain(std::vector<T>* out) {
    const std::lock_guard lock(mutex_);
    TakeAll(out);
  }

  // Consumer: waits for an item or Close, at most so long. Returns whether one of these came.
  bool WaitFor(std::chrono::microseconds time) {
    std::unique_lock lock(mutex_);
    return not_empty_.wait_for(lock, time, [this] { return closed_ || !items_.empty(); });
  }

  // Consumer: waits for an item or Close, then drains. Returns false once the queue is closed and
  // empty.
  bool WaitAndDrain(std::vector<T>* out) {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [this] { return closed_ || !items_.empty(); });
    const bool any = !items_.empty();
    TakeAll(out);
    return any;
  }

 private:
  // REQUIRES: mutex_ is held.
  void TakeAll(std::vector<T>* out) {
    const size_t size = out->size() + items_.size();
    // Without memory all items stay.
    if (size > out->capacity()) out->reserve(std::max(size, 2 * out->capacity()));
    for (T& item : items_) out->push_back(std::move(item));
    items_.clear();
  }

  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable not_empty_;
  std::deque<T> items_;  // guarded by mutex_
  bool closed_ = false;  // guarded by mutex_
};

}  // namespace skein
