#pragma once

#include <cstdint>
#include <span>

#include "engine/overload/wait_limits.h"

namespace skein {

// The requests that have not been begun, in number and by the time that they take.
struct QueuedWork {
  int32_t num_requests = 0;
  ClassTokens tokens;

  QueuedWork& operator+=(const QueuedWork& other) {
    num_requests += other.num_requests;
    tokens += other.tokens;
    return *this;
  }
};

// Decides whether the queue takes further requests: they are refused beyond a number of requests,
// or if they would probably wait longer than their limits. Not thread-safe: the engine's loop
// guards it by its mutex.
class QueueBound {
 public:
  // The configurations outlive this object.
  QueueBound(const EngineConfig& config, const SchedulerConfig& scheduler_config)
      : config_(config), rules_(config, scheduler_config) {}

  // Fails with kResourceExhausted, and says when to try again. All requests are accepted or none.
  Status Check(std::span<const Request> requests) const;
  // Requests were accepted; they are on their way to the scheduler.
  void NoteAccepted(const QueuedWork& work);
  // Some of them (`arrived`) have reached the scheduler, whose queue now holds `queued`.
  void Publish(const QueuedWork& arrived, const QueuedWork& queued, const WaitEstimate& estimate);

  // Accepted requests that have not reached the scheduler.
  int32_t num_arriving() const { return arriving_.num_requests; }
  // They never change: any thread may use them without the mutex.
  const WaitRules& rules() const { return rules_; }

 private:
  const EngineConfig& config_;
  const WaitRules rules_;
  QueuedWork arriving_;
  QueuedWork queued_;
  WaitEstimate estimate_;
};

}  // namespace skein
