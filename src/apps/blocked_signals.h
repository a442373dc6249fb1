#pragma once

#include <signal.h>

#include <chrono>
#include <initializer_list>
#include <memory>

#include "apps/host/model_host.h"
#include "base/result.h"

namespace skein {

// Signals that do not interrupt a thread: the program takes them one at a time when it is ready.
// The constructor blocks the signals in this thread and in threads that it starts later.
class BlockedSignals {
 public:
  explicit BlockedSignals(std::initializer_list<int> signals);

  void Wait() const;
  // Takes a signal and returns true if one comes within the time. A time of 0 does not wait.
  bool WaitFor(std::chrono::milliseconds time) const;

 private:
  sigset_t set_;
};

// Calls ModelHost::Load. If one of the signals comes meanwhile, the process ends with
// `exit_status`: there is nothing to drain or to save.
Result<std::unique_ptr<ModelHost>> LoadUnlessStopped(const ModelHostOptions& options,
                                                     const BlockedSignals& signals,
                                                     int exit_status);

}  // namespace skein
