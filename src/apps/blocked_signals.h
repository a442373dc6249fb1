#pragma once

#include <signal.h>

#include <chrono>
#include <initializer_list>
#include <memory>

#include "apps/host/model_host.h"
#include "base/result.h"

namespace skein {

// Signals that are taken one at a time where it suits, instead of interrupting. The constructor
// blocks them in this thread and in those that it starts later.
class BlockedSignals {
 public:
  explicit BlockedSignals(std::initializer_list<int> signals);

  void Wait() const;
  // True if one came within the time. Takes it. A time of 0 does not wait.
  bool WaitFor(std::chrono::milliseconds time) const;

 private:
  sigset_t set_;
};

// ModelHost::Load. One of the signals meanwhile ends the process with `exit_status`: there is
// nothing to drain and nothing to save.
Result<std::unique_ptr<ModelHost>> LoadUnlessStopped(const ModelHostOptions& options,
                                                     const BlockedSignals& signals,
                                                     int exit_status);

}  // namespace skein
