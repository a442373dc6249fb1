#pragma once

#include <ostream>

#include "sched/record/observer.h"

namespace skein {

// For people: one line per scheduler iteration, with requests, tokens, prefill and decode.
//
//   iteration 3: decode R0@72 R1@6 | prefill R2[50,79) R3[0,8)
//
// The number behind @ is the position of the one token computed. A request's further samples are
// R0.1, R0.2.
class TracePrinter final : public SchedulerObserver {
 public:
  // `out` outlives the printer.
  explicit TracePrinter(std::ostream* out) : out_(out) {}

  void OnPlan(int64_t iteration, const StepPlan& plan, TimeUs now_us) override;
  void OnPreempt(int64_t iteration, TimeUs now_us) override;
  void OnResume(int64_t iteration, TimeUs now_us) override;

 private:
  std::ostream* out_;
};

}  // namespace skein
