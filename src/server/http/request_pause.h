#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "base/interrupt/work_pause.h"

namespace skein {

// While it lives, the work of one request on this thread goes on as long as the request's answer is
// awaited and the server has not given up its requests. Between slices the thread does what the
// scope around it does, such as shorter tasks of its queue.
class RequestPause final : public WorkPause {
 public:
  // `alive` expires when the answer is no longer awaited. `ending` must outlive this object.
  RequestPause(std::weak_ptr<void> alive, const std::atomic<bool>* ending)
      : alive_(std::move(alive)), ending_(*ending), scope_(this) {}

  bool GoOn() override {
    if (alive_.expired() || ending_.load(std::memory_order_relaxed)) return false;
    return scope_.outer() == nullptr || scope_.outer()->GoOn();
  }

 private:
  const std::weak_ptr<void> alive_;
  const std::atomic<bool>& ending_;
  const PauseScope scope_;
};

}  // namespace skein
