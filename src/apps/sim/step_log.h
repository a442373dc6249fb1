#pragma once

#include <fstream>
#include <string>

#include "sched/record/observer.h"

namespace skein {

// Writes a line for each step: the time of its end in seconds, the number of its decodes and the
// number of its prompt tokens, separated by spaces.
class StepLog final : public SchedulerObserver {
 public:
  explicit StepLog(const std::string& path) : file_(path) {}

  bool good() const { return file_.good(); }
  void OnPlan(int64_t iteration, const StepPlan& plan, TimeUs now_us) override;
  void OnComplete(const StepResults& results, TimeUs now_us) override;

 private:
  std::ofstream file_;
  int64_t num_decodes_ = 0;
  int64_t num_prompt_tokens_ = 0;
};

}  // namespace skein
