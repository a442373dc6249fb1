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
//
// A request with a long run may wait for less time than others (WaitLimits). Under overload the
// others would always keep the queue longer than that. So while such requests are refused, their
// limit holds for all requests that are no more urgent and have no timeout of their own. A request
// with a timeout shortens the queue for no one else.
class QueueBound {
 public:
  // The configurations outlive this object.
  QueueBound(const EngineConfig& config, const SchedulerConfig& scheduler_config)
      : config_(config),
        max_model_len_(scheduler_config.max_model_len),
        rules_(config, scheduler_config) {}

  // Fails with kResourceExhausted, and says when to try again. All requests are accepted or none.
  Status Check(std::span<const Request> requests, TimeUs now_us);
  // Fails if Check would fail for `request` with any prompt of 1 to `max_prompt_len` tokens. The
  // request has all but its prompt. Ok decides nothing.
  Status CheckWithoutPrompt(const Request& request, int64_t max_prompt_len, TimeUs now_us);
  // Requests were accepted; they are on their way to the scheduler.
  void NoteAccepted(const QueuedWork& work);
  // Some of them (`arrived`) have reached the scheduler, whose queue now holds `queued`.
  void Publish(const QueuedWork& arrived, const QueuedWork& queued, const WaitEstimate& estimate);

  // Accepted requests that have not reached the scheduler.
  int32_t num_arriving() const { return arriving_.num_requests; }
  // Failures of Check and of CheckWithoutPrompt.
  uint64_t num_refused() const { return num_refused_; }
  uint64_t num_refused_without_prompt() const { return num_refused_without_prompt_; }
  // They never change: any thread may use them without the mutex.
  const WaitRules& rules() const { return rules_; }

 private:
  // The limit that a refused request with a long run has set.
  struct CommonLimit {
    TimeUs max_us = WaitLimits::kNever;
    TimeUs until_us = 0;
    int32_t priority = 0;  // it holds for requests of this or a higher number
  };

  static constexpr TimeUs kCommonUs = 5'000'000;  // a limit holds for so long

  Status CheckNumber(int32_t count) const;
  // The longest estimated wait with which the request is accepted.
  TimeUs MaxWaitUs(const Request& request, const WaitLimits& limits, TimeUs now_us) const;
  TimeUs WaitUs(ExecutionClass of_class) const;
  bool Accepts(const Request& request, const WaitLimits& limits, TimeUs now_us) const;
  // The failure of a request that is not accepted. Sets the common limit if its run is long.
  Status Refuse(const Request& request, const WaitLimits& limits, TimeUs now_us);
  QueuedWork Waiting() const;

  const EngineConfig& config_;
  const int32_t max_model_len_;
  const WaitRules rules_;
  QueuedWork arriving_;
  QueuedWork queued_;
  WaitEstimate estimate_;
  CommonLimit common_;
  uint64_t num_refused_ = 0;
  uint64_t num_refused_without_prompt_ = 0;
};

}  // namespace skein
