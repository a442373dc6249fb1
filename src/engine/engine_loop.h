#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/interrupt/alarm.h"
#include "base/queue.h"
#include "base/result.h"
#include "engine/engine_core.h"
#include "engine/executor.h"
#include "engine/idle_profile.h"
#include "engine/overload/late_requests.h"
#include "engine/overload/queue_bound.h"
#include "engine/overload/wait_estimate.h"
#include "skein/config.h"
#include "skein/engine.h"

namespace skein {

// The engine: its own thread turns events into steps.
//
//   Submit, Cancel --> event queue --> [ drain --> Plan --> Begin, Resume --> Complete ] -->
//   callbacks
//     any thread        bounded           the engine's thread, asleep while there is nothing to do
//
// With a sharing rule that preempts, an event in the queue also raises a signal. The engine's
// thread, which takes tickets like the others of its team, reads the signal between two tickets of
// a running step. It stops the step, clears the signal and runs the scheduler. No thread is woken
// for this, so nothing waits for a processor.
//
// An engine with an IdleProfile takes it once it has had nothing to do for a tenth of a second, a
// step at a time. An event stops that step like any other, and the step is measured again later.
// With a sharing rule that does not preempt, the event waits for the step's end.
//
// sched/sequence.h draws the states of a request. Callbacks run on the engine's thread.
//
// Memory may run out anywhere. The engine's thread then takes from a reserve
// (base/memory_reserve.h). Once that is short, requests that have not begun end with kUnavailable.
// If it does not suffice either, all requests end so, and the scheduler begins anew with an empty
// cache.
class EngineLoop final : public Engine {
 public:
  // `executor`, `clock` and the observers outlive the engine. The executor and the observers are
  // called on the engine's thread only (OnStart on the constructor's). REQUIRES: `scheduler_config`
  // was made from `config`. `profile` is taken while there is no work; may be null.
  EngineLoop(const EngineConfig& config, const SchedulerConfig& scheduler_config,
             Executor* executor, const Clock* clock, std::vector<SchedulerObserver*> observers,
             std::unique_ptr<IdleProfile> profile = nullptr);
  ~EngineLoop() override;  // calls Shutdown
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

  Status Submit(Request request, OutputCallback callback, RequestId* id) override;
  Status SubmitGroup(std::vector<Request> requests, OutputCallback callback,
                     std::vector<RequestId>* ids) override;
  Status CheckWait(const Request& request, int64_t max_prompt_len) override;
  void Cancel(RequestId id) override;
  void CancelSample(RequestId id, int32_t sample) override;
  EngineLimits Limits() const override { return limits_; }
  EngineStats Stats() const override;
  Status View(std::function<void(EngineView)> done) override;

  // Whether Submit would accept the request if no other request waited.
  Status Check(const Request& request) const;

  // Calls `visit` on the engine's thread, as Scheduler::VisitBlocks does. Returns false, and never
  // calls `visit`, if kMaxVisits calls wait already or the engine is shut down.
  static constexpr int32_t kMaxVisits = 1024;
  bool VisitBlocks(std::function<void(BlockManager*)> visit);

  // Refuses requests from now on and waits, at most `timeout_us`, until all are finished. Returns
  // whether they are. Must not be called on the engine's thread.
  bool Drain(int64_t timeout_us);
  // Ends every request with kError (kUnavailable), and ends the thread. Must not be called on the
  // engine's thread.
  void Shutdown();

 private:
  // The arrival of one request or of a group. The scheduler gets all requests of a group together.
  struct Arrival {
    RequestId first_id = 0;  // the other requests have the following ids
    std::vector<Request> requests;
    OutputCallback callback;
    TimeUs arrival_us = 0;
    QueuedWork work;
  };
  struct Cancellation {
    RequestId id = 0;
    int32_t sample = -1;  // -1: all samples
  };
  struct ViewRequest {
    std::function<void(EngineView)> done;
  };
  struct BlockVisit {
    std::function<void(BlockManager*)> visit;
  };
  using Event = std::variant<Arrival, Cancellation, ViewRequest, BlockVisit>;

  // The state of a live request that other threads need.
  struct LiveRequest {
    bool cancelled = false;
    std::set<int32_t> cancelled_samples;
    int32_t num_samples = 1;
  };

  // Events that were taken from the queue.
  struct Batch {
    std::vector<Event> events;
    size_t next = 0;           // to be handled
    Event* at_hand = nullptr;  // while it is being handled
    QueuedWork arrived;        // since Publish

    void ForgetHandled() {
      if (next < events.size()) return;
      events.clear();
      next = 0;
    }
  };

  // The waits of requests, as the engine's thread knows them.
  struct Waits {
    WaitEstimate estimate;
    LateRequests late;
    std::vector<WaitLimits> limits;  // scratch of NoteLimits; keeps its memory
  };

  void NoteLimits(const Arrival& arrival);
  void SaveMemory();
  QueuedWork Queued() const;  // in the scheduler
  Status Enqueue(std::vector<Request> requests, OutputCallback callback,
                 std::vector<RequestId>* ids);
  void Run();
  bool RunRound();  // false: the queue is closed
  bool ProfileWhileIdle();
  void HandleEvents();
  void Handle(Event* event);
  void AnswerView(const ViewRequest& request);
  // After std::bad_alloc.
  void Recover();
  void FailArrival(const Arrival& arrival, const Status& status);
  void RunStep();
  void RaiseSignal();
  void Acknowledge();
  void Publish();  // updates the state that other threads read
  void NoteEnded(RequestId id);
  void PushCancellation(RequestId id, int32_t sample);

  const EngineConfig config_;
  const SchedulerConfig scheduler_config_;
  const EngineLimits limits_;
  const Clock* const clock_;

  BoundedQueue<Event> events_;
  std::atomic<bool> quit_{false};       // the running step is to be left for good
  std::atomic<bool> preempt_{false};    // the running step is to stop at the next boundary
  std::atomic<TimeUs> signal_us_{0};    // time of the signal; 0: none is raised
  std::atomic<int32_t> num_visits_{0};  // visits in events_

  // Used by the engine's thread only.
  EngineCore core_;
  std::optional<Alarm> alarm_;  // raises the signal too; only with a sharing that preempts
  Batch batch_;
  std::unique_ptr<IdleProfile> profile_;  // null: there is none, or it has been taken
  Waits waits_;

  mutable std::mutex mutex_;
  std::condition_variable all_ended_;
  std::map<RequestId, LiveRequest> live_;  // guarded by mutex_
  RequestId next_id_ = 0;                  // guarded by mutex_
  uint64_t next_group_ = 1;                // guarded by mutex_
  QueueBound queue_;                       // guarded by mutex_
  int32_t num_views_ = 0;                  // ViewRequests in events_; guarded by mutex_
  bool accepting_ = true;                  // guarded by mutex_
  EngineStats published_stats_;            // guarded by mutex_

  std::mutex shutdown_mutex_;  // held while the thread is joined
  std::thread thread_;
};

// Makes a running engine for `config`. Fails with kInvalidArgument, naming the member, if the
// configuration is out of range. `profile`: as for EngineLoop.
Result<std::unique_ptr<EngineLoop>> MakeEngine(const EngineConfig& config, Executor* executor,
                                               const Clock* clock,
                                               std::vector<SchedulerObserver*> observers = {},
                                               std::unique_ptr<IdleProfile> profile = nullptr);

}  // namespace skein
