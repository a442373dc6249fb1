#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace skein::cuda {

// The work that the host lets the device have ahead of it, by estimate.
inline constexpr double kAheadUs = 500;
// The operators, or slices of long ones, between two marks at most.
inline constexpr int32_t kMostOperatorsPerMark = 40;

// How far the host runs ahead of the device. The host puts a mark behind each third of this work,
// and waits for the oldest mark while the work between the device and the host is more:
//
//   | operators | mark | operators | mark | operators | mark |
//   ^ the device may be here                                 ^ the host
//
// The host does not wait for its last mark: an operator must not end before the host gives the next
// one. So the device never has more ahead of it than this work and a third of it and a slice, or
// two thirds and two slices.
class RunAhead {
 public:
  // For operators given from now on.
  void set_ahead_us(double ahead_us) { ahead_us_ = ahead_us; }
  // Whether the device may still have work.
  bool empty() const { return groups_.empty() && num_unmarked_ == 0; }
  // The device has done all of it.
  void Clear();
  // The device has got an operator that takes this time. Returns whether a mark belongs behind it.
  bool Add(double operator_us);
  void AddMark(int64_t mark);
  // The oldest mark, if the host has to wait for it now. REQUIRES: AddMark follows Add.
  std::optional<int64_t> PopExcess();

 private:
  struct Group {
    int64_t mark;
    double us;  // of the operators ahead of the mark, behind the mark before
  };
  double ahead_us_ = kAheadUs;
  std::deque<Group> groups_;
  double marked_us_ = 0;      // of all groups
  double unmarked_us_ = 0;    // behind the last mark
  int32_t num_unmarked_ = 0;  // operators behind the last mark
};

}  // namespace skein::cuda
