#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sched/decode_set/stop_table.h"

namespace skein {

// The constants of the stop rules. The paper gives none; these are ours. The tests of the learned
// rules show the ranges in which they work and the effects beyond.
struct StopOptions {
  StopRule rule = StopRule::kBandit;
  // bandit, q-learning: false uses the learned table and learns nothing. A question gets the answer
  // with the greater value, yes if either value is unknown.
  bool learn = true;
  uint64_t seed = 0;  // of Q-learning's random decisions
  // bandit, q-learning: the share of the reward of batches without stops that stopping may cost. 1:
  // any share. It counts both stops that explore and stops by learned values. A limit of 1 % leaves
  // room for costs that rewards do not see, within the 2 % that `flock` may lose to `fill`.
  double max_loss = 0.01;

  // heuristic: a further request is always worth the loss of this many tokens of the shared prefix.
  // A question of this length beside documents is cheap...
  int32_t max_lost_tokens = 128;
  // ...as is this larger loss while the batch has fewer than `small_batch` requests. A decode step
  // of a small batch reads the weights in any case, so one more row is nearly free...
  int32_t small_batch = 8;
  int32_t max_lost_tokens_small = 2048;
  // ...or this loss if as many others wait with the shorter prefix as are in the batch, so that
  // those will fill it.
  int32_t max_lost_tokens_peers = 1024;

  // bandit: a decision's score is mean + exploration * best * sqrt(ln S / n). `best` is the best
  // reward ever seen, so the constant has no unit. The mean is windowed: from the 256th reward of a
  // decision on, each counts 1 / 256 and earlier ones fade. From 0.25 to 0.5 it learns a batch of
  // 64 within about 800 batches. Below, it may keep the first stop that was better than a mixed
  // batch. Above, it goes on to explore known decisions.
  double exploration = 0.3;

  // q-learning. A decision's future is the batch being built, so it is not discounted. The first
  // rewards of a state are averaged (a rate of 1 / count) until the rate falls to alpha.
  double alpha = 0.1;
  double gamma = 1.0;
  // A state's decisions are random with probability epsilon. It falls from `start` by `decay` with
  // each visit of that state, down to its floor. So a state that is reached late is still explored,
  // and a state in every batch soon is not. It is under 5 % after 150 visits. The floor lets it
  // learn when the load changes. It is small because a batch of 64 takes 63 decisions.
  double epsilon_start = 1.0;
  double epsilon_decay = 0.98;
  double epsilon_floor = 0.001;
};

// Sets constants by name, "max-lost=64,exploration=0.2" (see StopConstants); an empty text sets
// nothing. Fails with kInvalidArgument, naming the constant and what is allowed.
Status SetStopConstants(std::string_view text, StopOptions* options);
// All constants in that form; SetStopConstants makes the same options from the text.
std::string StopConstants(const StopOptions& options);

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
