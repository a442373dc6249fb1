#include "sched/decode_set/waits_with_all.h"

#include <algorithm>
#include <limits>

namespace skein {
namespace {

// Removes the first elements once they are more than half of all.
template <typename T>
void Trim(std::vector<T>* values, size_t* first) {
  if (2 * *first <= values->size()) return;
  values->erase(values->begin(), values->begin() + static_cast<ptrdiff_t>(*first));
  *first = 0;
}

}  // namespace

void WaitsWithAll::Begin(double waited_s, TimeUs now_us) {
  now_s_ = 1e-6 * static_cast<double>(now_us);
  num_steps_ = 0;
  longest_s_ = waited_s;
  ends_.clear();
  arrivals_us_.clear();
  first_end_ = first_waiting_ = 0;
}

// Lets the requests that have arrived join, as far as there is room.
void WaitsWithAll::Join(const Load& load) {
  while (Waits() && NumRows() < load.max_rows && WaitedS(arrivals_us_[first_waiting_]) >= 0) {
    longest_s_ = std::max(longest_s_, WaitedS(arrivals_us_[first_waiting_++]));
    ends_.push_back(num_steps_ + load.output_steps);
  }
  Trim(&arrivals_us_, &first_waiting_);
}

void WaitsWithAll::Advance(const Load& load, TimeUs now_us) {
  const double until_s = 1e-6 * static_cast<double>(now_us);
  for (Join(load); now_s_ < until_s; Join(load)) {
    const double step_s = load.step.OfRows(NumRows());
    double left_s = until_s - now_s_;  // until the batch changes
    if (Waits() && NumRows() < load.max_rows) {
      left_s = std::min(left_s, -WaitedS(arrivals_us_[first_waiting_]));
    }
    bool ends = false;
    if (NumRows() > 0) {
      const double end_s = std::max(0.0, ends_[first_end_] - num_steps_) * step_s;
      ends = end_s <= left_s;
      left_s = std::min(left_s, end_s);
    }
    const bool done = left_s >= until_s - now_s_;
    now_s_ = done ? until_s : now_s_ + left_s;
    num_steps_ += left_s / step_s;
    first_end_ += ends;
    Trim(&ends_, &first_end_);
  }
  Predict(load);
}

double WaitsWithAll::EndS(const Load& load, double num_ends) const {
  const size_t num_rows = ends_.size() - first_end_;
  if (num_ends < 1 || num_rows == 0) return 0;
  const size_t last = static_cast<size_t>(num_ends) - 1;
  const double end = ends_[first_end_ + last % num_rows] +
                     static_cast<double>(last / num_rows) * load.output_steps;
  return std::max(0.0, end - num_steps_) * load.step.OfRows(NumRows());
}

// Takes in the waits of the first and of the last request that wait.
void WaitsWithAll::Predict(const Load& load) {
  if (!Waits()) return;
  const auto num_waiting = static_cast<double>(arrivals_us_.size() - first_waiting_);
  const double num_free = load.max_rows - NumRows();
  longest_s_ =
      std::max({longest_s_, WaitedS(arrivals_us_[first_waiting_]) + EndS(load, 1 - num_free),
                WaitedS(arrivals_us_.back()) + EndS(load, num_waiting - num_free)});
}

}  // namespace skein
