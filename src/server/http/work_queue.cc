#include "server/http/work_queue.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace skein {

WorkQueue::WorkQueue(int num_threads)
    : num_long_max_(static_cast<size_t>(std::max(1, num_threads - 1))) {
  try {
    for (int i = 0; i < std::max(1, num_threads); ++i) threads_.emplace_back([this] { Run(); });
  } catch (const std::exception&) {
    Stop();  // those that have started
    throw;
  }
}

WorkQueue::~WorkQueue() { Stop(); }

void WorkQueue::Post(Length length, std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    (length == Length::kShort ? short_ : long_).push_back(std::move(task));
  }
  changed_.notify_one();
}

void WorkQueue::Stop() {
  std::deque<std::function<void()>> dropped[2];  // destroyed after the lock is released
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    std::swap(dropped[0], short_);
    std::swap(dropped[1], long_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

bool WorkQueue::MayTakeLong() const { return !long_.empty() && num_long_running_ < num_long_max_; }

void WorkQueue::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !short_.empty() || MayTakeLong(); });
    if (stopped_) return;
    const bool is_long = short_.empty();
    std::deque<std::function<void()>>& queue = is_long ? long_ : short_;
    std::function<void()> task = std::move(queue.front());
    queue.pop_front();
    if (is_long) ++num_long_running_;
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
    if (!is_long) continue;
    --num_long_running_;
    if (MayTakeLong()) changed_.notify_one();
  }
}

}  // namespace skein
