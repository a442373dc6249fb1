#pragma once

#include <cstdint>

#include "sched/config.h"
#include "sched/decode_set/stop_table.h"
#include "sched/plan.h"
#include "skein/request.h"

namespace skein {

// Sees every event of a scheduler, in order: enough to replay it. Called on the scheduler's thread
// from inside its functions; must not call back into it. References are valid during the call.
// What an observer does not care for, it leaves out.
class SchedulerObserver {
 public:
  virtual ~SchedulerObserver() = default;

  virtual void OnStart(const SchedulerConfig& /*config*/) {}
  virtual void OnArrive(RequestId /*id*/, const Request& /*request*/, TimeUs /*now_us*/) {}
  // `sample` < 0: the whole request.
  virtual void OnCancel(RequestId /*id*/, int32_t /*sample*/, TimeUs /*now_us*/) {}
  // Not called for rounds that found nothing to do. Iterations count from 0.
  virtual void OnPlan(int64_t /*iteration*/, const StepPlan& /*plan*/, TimeUs /*now_us*/) {}
  // The step in flight stops and is suspended, or dropped where its requests have ended.
  virtual void OnPreempt(int64_t /*iteration*/, TimeUs /*now_us*/) {}
  // A suspended step goes on: what OnPlan is for a new one.
  virtual void OnResume(int64_t /*iteration*/, TimeUs /*now_us*/) {}
  virtual void OnComplete(const StepResults& /*results*/, TimeUs /*now_us*/) {}
  // The scheduler ends. What the stop rule of its decode set has learned; null where nothing is.
  virtual void OnEnd(const StopTable* /*learned*/) {}
};

}  // namespace skein
