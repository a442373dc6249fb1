#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sched/decode_set/stop_table.h"

namespace skein {

// Keeps an account of the cost of stopping. It bounds the throughput lost to a rule that explores
// or has outdated values (the idea of conservative bandits: Wu, Shariff, Lattimore and Szepesvari,
// 2016). A full batch is one in which no request was refused. The baseline is the mean reward of
// about the latest 16 full batches. Each full batch pays max_loss of the baseline into the account.
// A stopped batch changes the account by its reward minus (1 - max_loss) of the baseline. If a full
// batch has a reward above the baseline, each stopped batch before it is charged half of the
// difference, since stopping looks too good while the load grows. No request is refused while the
// account is empty, or after 15 stopped batches that come one after the other or have no reward
// yet. The bandit learns nothing from these batches, since it did not decide. The account holds at
// most one batch's worth. The first batches are full, so no warm-up is needed.
class StopAccount {
 public:
  explicit StopAccount(double max_loss) : max_loss_(max_loss) {}

  // Whether the batch that is being built may be stopped.
  bool MayStop() const {
    return max_loss_ >= 1 ||
           (credit_ > 0 && num_stopped_ < kMaxStoppedInTurn && num_unrewarded_ < kMaxStoppedInTurn);
  }
  // Notes that a batch was stopped; its reward comes later.
  void NoteStop() { ++num_unrewarded_; }
  void Observe(double reward, bool stopped);

 private:
  static constexpr int32_t kMaxStoppedInTurn = 15;
  static constexpr double kBaselineRate = 1.0 / 16;

  const double max_loss_;
  double baseline_ = 0;
  double credit_ = 0;
  int64_t num_whole_ = 0;       // batches in which no request was refused
  int32_t num_stopped_ = 0;     // stopped batches since the last full one
  int32_t num_unrewarded_ = 0;  // stopped batches since the last reward
};

// Decides whether the best candidate joins the batch. A batch is built by questions,
//
//   ShouldAdd yes, ShouldAdd yes, ShouldAdd no | EndBuilding ... Reward
//
// until an answer is no, the queue is empty, or the batch has no free slot. The question about a
// candidate that cannot join after all is taken back (Withdraw). A reward is the decode throughput,
// in tokens per second, of the batch as built, and goes to all questions since the last reward. The
// caller chooses the steps that count for it (sched/decode_set/prefix_groups.h). At most
// kMaxPending questions that wait for a reward are remembered; nothing is learned from further
// ones. The answer for an empty batch is always yes, and its question is not remembered. Random
// numbers come from the seed alone. Allocates nothing once constructed. Not thread-safe.
class StopPolicy {
 public:
  static constexpr int32_t kMaxPending = 4096;

  virtual ~StopPolicy() = default;

  virtual bool ShouldAdd(const StopQuestion& question) = 0;
  // Takes the last question back. REQUIRES: its answer was yes, and no other function has been
  // called since.
  virtual void Withdraw() {}
  virtual void EndBuilding() {}
  virtual void Reward(double /*tokens_per_s*/) {}
  // The learned table; null if the rule does not learn.
  virtual const StopTable* table() const { return nullptr; }
};

// `learned`: the table to continue from, or null. REQUIRES: its rule is that of the options.
std::unique_ptr<StopPolicy> MakeStopPolicy(const StopOptions& options,
                                           const StopTable* learned = nullptr);

}  // namespace skein
