#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace skein {

// Predicts the longest wait that requests would have had if all might have joined, first come,
// first served, while groups have turns (sched/decode_set/group_turns.h). It keeps the batch that
// there would be: each row needs the same number of steps, and the next request joins once a row
// has ended. Not thread-safe. Allocates nothing while it holds no more requests than at its peak.
class WaitsWithAll {
 public:
  // The time of a step of `rows` rows is `step_s` + `row_s` x rows.
  struct StepTime {
    double step_s = 0;
    double row_s = 0;
    double OfRows(double rows) const { return step_s + row_s * rows; }
  };
  struct Load {
    int32_t max_rows = 1;     // of the batch
    double output_steps = 1;  // of a row
    StepTime step;
  };

  // Begins anew with an empty batch and no waiting requests, the longest of which has waited for
  // `waited_s` so far.
  void Begin(double waited_s, TimeUs now_us);
  // A row of the batch ends after so many steps. REQUIRES: no fewer than for the row before.
  void AddRow(double num_steps) { ends_.push_back(num_steps); }
  // REQUIRES: `now_us` is not before the last one.
  void Arrive(TimeUs now_us) { arrivals_us_.push_back(now_us); }
  // The batch goes on until `now_us`. O(rows that end).
  void Advance(const Load& load, TimeUs now_us);
  // Another prediction of the same waits.
  void Include(double wait_s) { longest_s_ = std::max(longest_s_, wait_s); }
  // The longest wait since Begin, from a request's arrival until it joins. Includes the waits that
  // Advance has predicted for the requests that have not joined.
  double longest_s() const { return longest_s_; }

 private:
  double NumRows() const { return static_cast<double>(ends_.size() - first_end_); }
  bool Waits() const { return first_waiting_ < arrivals_us_.size(); }
  // The time for which a request has waited.
  double WaitedS(TimeUs arrival_us) const {
    return now_s_ - 1e-6 * static_cast<double>(arrival_us);
  }
  void Join(const Load& load);
  void Predict(const Load& load);
  // The time until `num_ends` rows have ended.
  double EndS(const Load& load, double num_ends) const;

  double now_s_ = 0;
  double num_steps_ = 0;  // since Begin
  double longest_s_ = 0;
  std::vector<double> ends_;  // the numbers of steps at which rows end, from first_end_ on
  size_t first_end_ = 0;
  std::vector<TimeUs> arrivals_us_;  // of the requests that have not joined: from first_waiting_ on
  size_t first_waiting_ = 0;
};

}  // namespace skein
