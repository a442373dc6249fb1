#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "sched/config.h"
#include "sched/sequence.h"

namespace skein {

// Orders by deadline (FlowPrefill, section 5): the highest priority goes first, which is
//
//   edf    1 / deadline
//   d-edf  sgn(deadline - now) / deadline
//   s-edf  sgn(slack) / deadline,   slack = deadline - now - predicted remaining time
//
// with equal ones by arrival. So those with slack go by deadline, then those whose slack is 0, then
// those without, the latest deadline first. A request's slack falls with the clock alone, so it has
// a moment at which it flips, and until then its place is constant; a prediction that changes only
// moves that moment. Hence three orders, each O(log requests): the two halves lie end to end in the
// ranks by which all waiting work is ordered, the moments in a table of their own:
//
//   rank:   overdue, by the end of their bound | slack, by deadline | 0 | none, latest first
//
// The bound is not the formula's: by that alone a request without slack may wait for ever behind
// those that follow. Who is without slack for `max_late_us` goes before all others.
//
// deadline = arrival + SLO x 2^priority: a step of priority doubles or halves the time that a
// request is given, so it shifts the request's class instead of standing before every deadline of
// another. Requests without an SLO have `default_slo_us`.
// Not thread-safe.
class SlackOrder {
 public:
  static constexpr TimeUs kNever = std::numeric_limits<TimeUs>::max();
  static constexpr int32_t kMaxShift = 16;  // of a priority: what lies beyond counts as that
  // Ranks from this one on are of those without slack who are not overdue.
  static constexpr int64_t kFirstLateRank = int64_t{1} << 61;

  // REQUIRES: as MakeSchedulerConfig makes it.
  explicit SlackOrder(const SchedulerConfig& config);

  static bool Orders(Order order) {
    return order == Order::kEdf || order == Order::kDeadlineEdf || order == Order::kSlackEdf;
  }

  TimeUs DeadlineOf(const Request& request, TimeUs arrival_us) const;

  // The rank at `now_us` of a request that would still compute for `remaining_us`, and the next
  // moment at which another one holds (kNever: none does).
  struct Place {
    int64_t rank = 0;
    TimeUs until_us = kNever;
  };
  Place PlaceOf(TimeUs deadline_us, TimeUs remaining_us, TimeUs now_us) const;

  // Remembers that the sequence's rank changes then; replaces what was remembered of it. kNever:
  // nothing is.
  void Watch(Sequence* sequence, TimeUs until_us);
  // Takes one whose moment has come, the earliest first; null: none.
  Sequence* TakeDue(TimeUs now_us);
  // When the next one's comes.
  std::optional<TimeUs> NextMoment() const;
  size_t num_watched() const { return moments_.size(); }

 private:
  // The moment from which slack is not above 0.
  TimeUs FlipOf(TimeUs deadline_us, TimeUs remaining_us) const;

  const Order order_;
  const TimeUs default_slo_us_;
  const TimeUs max_late_us_;                                  // kNever: unbounded
  std::map<std::pair<TimeUs, uint64_t>, Sequence*> moments_;  // by moment and arrival
};

}  // namespace skein
