#include "base/interrupt/alarm.h"

#include <chrono>
#include <utility>

namespace skein {

Alarm::Alarm(const Clock* clock, std::function<void()> ring)
    : clock_(clock), ring_(std::move(ring)), thread_([this] { Run(); }) {}

Alarm::~Alarm() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Alarm::Set(TimeUs at_us) {
  bool earlier = false;
  {
    const std::lock_guard lock(mutex_);
    at_us_ = at_us;
    earlier = at_us < wake_us_;
  }
  if (earlier) changed_.notify_one();
}

void Alarm::Run() {
  std::unique_lock lock(mutex_);
  while (!quit_) {
    const TimeUs now_us = clock_->NowUs();
    if (at_us_ <= now_us) {
      at_us_ = kNever;
      lock.unlock();
      ring_();
      lock.lock();
      continue;
    }
    wake_us_ = at_us_;
    if (wake_us_ == kNever) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, std::chrono::microseconds(wake_us_ - now_us));
    }
  }
}

}  // namespace skein
