#include "cuda/executor/run_ahead.h"

namespace skein::cuda {

void RunAhead::Clear() {
  groups_.clear();
  marked_us_ = unmarked_us_ = 0;
  num_unmarked_ = 0;
}

bool RunAhead::Add(double operator_us) {
  unmarked_us_ += operator_us;
  return ++num_unmarked_ == kMostOperatorsPerMark || unmarked_us_ >= ahead_us_ / 3;
}

void RunAhead::AddMark(int64_t mark) {
  groups_.push_back({mark, unmarked_us_});
  marked_us_ += unmarked_us_;
  unmarked_us_ = 0;
  num_unmarked_ = 0;
}

std::optional<int64_t> RunAhead::PopExcess() {
  if (groups_.size() < 2 || marked_us_ <= ahead_us_) return std::nullopt;
  const Group oldest = groups_.front();
  groups_.pop_front();
  marked_us_ -= oldest.us;
  return oldest.mark;
}

}  // namespace skein::cuda
