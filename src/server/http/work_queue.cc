#include "server/http/work_queue.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/interrupt/work_pause.h"

namespace skein {

// Asked between slices by a task of some class.
class WorkQueue::Pause final : public WorkPause {
 public:
  Pause(WorkQueue* queue, size_t task_class) : queue_(*queue), class_(task_class) {}
  bool GoOn() override { return queue_.MakeWay(class_); }

 private:
  WorkQueue& queue_;
  const size_t class_;
};

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

size_t WorkQueue::ClassOf(size_t num_bytes) {
  return static_cast<size_t>(
      std::ranges::count_if(kClassEnds, [&](size_t end) { return num_bytes >= end; }));
}

void WorkQueue::Post(size_t num_bytes, Task task) {
  const size_t task_class = ClassOf(num_bytes);
  {
    const std::lock_guard lock(mutex_);
    if ((state_ & kStopped) != 0) return;
    tasks_[task_class].push_back(std::move(task));
    state_ |= 1U << task_class;
  }
  changed_.notify_one();
}

void WorkQueue::Stop() {
  std::array<std::deque<Task>, kNumClasses> dropped;  // destroyed after the lock is released
  {
    const std::lock_guard lock(mutex_);
    state_ = kStopped;
    std::swap(dropped, tasks_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

bool WorkQueue::CanStart() const {
  return !tasks_[0].empty() || (state_ != 0 && num_long_running_ < num_long_max_);
}

WorkQueue::Task WorkQueue::Take(size_t* task_class) {
  const auto found = std::ranges::find_if(tasks_, [](const auto& tasks) { return !tasks.empty(); });
  *task_class = static_cast<size_t>(found - tasks_.begin());
  Task task = std::move(found->front());
  found->pop_front();
  if (found->empty()) state_ &= ~(1U << *task_class);
  return task;
}

// The task is destroyed before the caller goes on.
void WorkQueue::RunTask(size_t task_class, Task task) {
  Pause pause(this, task_class);
  const PauseScope scope(&pause);
  task();
}

bool WorkQueue::MakeWay(size_t task_class) {
  const uint32_t below = (1U << task_class) - 1;
  if ((state_.load(std::memory_order_relaxed) & (below | kStopped)) == 0) return true;
  std::unique_lock lock(mutex_);
  size_t num_waiting = 0;
  for (size_t i = 0; i < task_class; ++i) num_waiting += tasks_[i].size();
  for (; num_waiting > 0 && (state_ & below) != 0; --num_waiting) {
    size_t lower = 0;
    Task task = Take(&lower);
    lock.unlock();
    RunTask(lower, std::move(task));
    lock.lock();
  }
  return (state_ & kStopped) == 0;
}

void WorkQueue::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return (state_ & kStopped) != 0 || CanStart(); });
    if ((state_ & kStopped) != 0) return;
    size_t task_class = 0;
    Task task = Take(&task_class);
    const bool is_long = task_class > 0;
    if (is_long) ++num_long_running_;
    lock.unlock();
    RunTask(task_class, std::move(task));
    lock.lock();
    if (!is_long) continue;
    --num_long_running_;
    if (CanStart()) changed_.notify_one();
  }
}

}  // namespace skein
