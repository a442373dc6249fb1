#pragma once

#include <cstdint>

#include "kv/block_listener.h"
#include "sched/config.h"
#include "sched/decode_set/stop_table.h"
#include "sched/plan.h"
#include "skein/request.h"

namespace skein {

// Sees every event of a scheduler, in order: enough to replay the scheduler's decisions. Called on
// the scheduler's thread from inside its functions; must not call back into the scheduler.
// References are valid during the call. An observer overrides only the events that it needs.
class SchedulerObserver {
 public:
  virtual ~SchedulerObserver() = default;

  virtual void OnStart(const SchedulerConfig& /*config*/) {}
  // From now on the scheduler uses these costs.
  virtual void OnProfile(const CostFit& /*cost*/, const DecodeFit& /*decode_cost*/,
                         TimeUs /*now_us*/) {}
  // The listener that is told which blocks enter and leave the prefix cache; null: none. At most
  // one observer may have a listener.
  virtual BlockListener* block_listener() { return nullptr; }
  virtual void OnArrive(RequestId /*id*/, const Request& /*request*/, TimeUs /*now_us*/) {}
  // `sample` < 0: all samples of the request.
  virtual void OnCancel(RequestId /*id*/, int32_t /*sample*/, TimeUs /*now_us*/) {}
  // Not called for rounds that found nothing to do. Iterations count from 0.
  virtual void OnPlan(int64_t /*iteration*/, const StepPlan& /*plan*/, TimeUs /*now_us*/) {}
  // The step in flight stops. It is suspended, or dropped if its requests have ended.
  virtual void OnPreempt(int64_t /*iteration*/, TimeUs /*now_us*/) {}
  // A suspended step goes on. OnPlan is not called for it.
  virtual void OnResume(int64_t /*iteration*/, TimeUs /*now_us*/) {}
  virtual void OnComplete(const StepResults& /*results*/, TimeUs /*now_us*/) {}
  // The scheduler ends. `learned`: the table of its stop rule; null if the rule does not learn.
  virtual void OnEnd(const StopTable* /*learned*/) {}
};

}  // namespace skein
