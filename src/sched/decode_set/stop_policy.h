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
// 2016). A full batch is one in which no request was refused; the baseline is the mean reward of
// about the latest 16. Each full batch pays max_loss of the baseline into the account. Each stopped
// batch pays in its reward above (1 - max_loss) of the baseline, or takes out the difference below
// that. A full batch may be rewarded more than the baseline. The stopped batches before it are then
// taken to have missed half of the difference, since stopping looks too good while the load grows.
// No request is refused while the account is empty, or after 15 stopped batches in turn or without
// a reward. The bandit learns nothing from these batches, since it did not decide. The account
// holds at most one batch's worth. The first batches are full, so no warm-up is needed.
class StopAccount {
 public:
  explicit StopAccount(double max_loss) : max_loss_(max_loss) {}

  // Whether the batch that is being built may be stopped.
  bool MayStop() const {
    return max_loss_ >= 1 ||
           (credit_ > 0 && num_stopped_ < kMaxStoppedInTurn && num_unrewarded_ < kMaxStoppedInTurn);
  }
  // A batch was stopped; its reward is to come.
  void NoteStop() { ++num_unrewarded_; }
  void Observe(double reward, bool stopped);

 private:
  static constexpr int32_t kMaxStoppedInTurn = 15;
  static constexpr double kBaselineRate = 1.0 / 16;

  const double max_loss_;
  double baseline_ = 0;
  double credit_ = 0;
  int64_t num_whole_ = 0;       // batches in which no request was refused
  int32_t num_stopped_ = 0;     // since the last of them
  int32_t num_unrewarded_ = 0;  // stopped since the last reward
};

// Decides whether the best candidate joins the batch. A batch is built by questions,
//
//   ShouldAdd yes, ShouldAdd yes, ShouldAdd no | EndBuilding ... Reward
//
// ended by a no, by an empty queue, or by a batch without free slots. The question of a candidate
// that cannot join after all is taken back (Withdraw). A reward is the decode throughput, in tokens
// per second, of the batch as built, and goes to all questions since the last one. The caller
// chooses the steps that count (sched/decode_set/prefix_groups.h). At most kMaxPending questions
// that wait for a reward are remembered; further ones teach nothing. An empty batch always adds,
// and its question is not remembered. Random numbers come from the seed alone. Allocates nothing
// once constructed. Not thread-safe.
class StopPolicy {
 public:
  static constexpr int32_t kMaxPending = 4096;

  virtual ~StopPolicy() = default;

  virtual bool ShouldAdd(const StopQuestion& question) = 0;
  // Takes the last question back. REQUIRES: its answer was yes, and nothing has happened since.
  virtual void Withdraw() {}
  virtual void EndBuilding() {}
  virtual void Reward(double /*tokens_per_s*/) {}
  // The learned table; null if the rule does not learn.
  virtual const StopTable* table() const { return nullptr; }
};

// `learned`: continue from there. REQUIRES: its rule is that of the options, or null.
std::unique_ptr<StopPolicy> MakeStopPolicy(const StopOptions& options,
                                           const StopTable* learned = nullptr);

}  // namespace skein
