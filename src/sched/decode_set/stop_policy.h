#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sched/decode_set/stop_table.h"

namespace skein {

// What the stop rules are made of. The text that describes them gives no constants; these are ours,
// and the tests of the learned ones show how far they may be moved and what happens beyond.
struct StopOptions {
  StopRule rule = StopRule::kBandit;
  // bandit, q-learning: false keeps to what was learned before. A question gets the answer of the
  // greater value, yes where either is unknown, and nothing is learned.
  bool learn = true;
  uint64_t seed = 0;  // of Q-learning's random decisions
  // bandit, q-learning: stopping, to explore or by what is believed, may cost this share of what
  // the batches are rewarded to which everybody is added; 1: any. A throughput measured lower by
  // 1 % leaves room for what rewards do not see, within the 2 % that `flock` may lose to `fill`.
  double max_loss = 0.01;

  // heuristic: losing this much of the common prefix is always worth a request more (a question of
  // its own length beside documents)...
  int32_t max_lost_tokens = 128;
  // ...and this much while the batch has fewer requests than that: a decode step of a small batch
  // reads the weights in any case, so one more row is nearly free...
  int32_t small_batch = 8;
  int32_t max_lost_tokens_small = 2048;
  // ...or where as many others wait with the shorter prefix as are in the batch, so that it will
  // fill up with those.
  int32_t max_lost_tokens_peers = 1024;

  // bandit: a decision's score is mean + exploration * best * sqrt(ln S / n), with the best reward
  // ever seen, so that the constant has no unit. The mean is windowed: from the 256th reward of a
  // decision on, each counts 1 / 256 and those before it fade. From 0.25 to 0.5 it learns a batch
  // of 64 within about 800 batches; below, it may keep the first stop that was better than a mixed
  // batch; above, it pays for exploring what it knows.
  double exploration = 0.3;

  // q-learning. A decision's future is the very batch that is being built, so it is not discounted;
  // the first rewards of a state are averaged (a rate of 1 / count) until the rate falls to alpha.
  double alpha = 0.1;
  double gamma = 1.0;
  // A state's decisions are random with epsilon, which falls from `start` with each visit of that
  // very state, by `decay`, to its floor: a state that comes into reach late is still explored, and
  // one that is visited in every batch soon is not. Under 5 % after 150 visits. The floor keeps it
  // learning when the load changes, and is small because a batch of 64 takes 63 decisions.
  double epsilon_start = 1.0;
  double epsilon_decay = 0.98;
  double epsilon_floor = 0.001;
};

// Sets constants by name, "max-lost=64,exploration=0.2" (see StopConstants); an empty text sets
// nothing. Fails with kInvalidArgument, naming the constant and what is allowed.
Status SetStopConstants(std::string_view text, StopOptions* options);
// All of them, in that form: what SetStopConstants makes the same options of.
std::string StopConstants(const StopOptions& options);

// Keeps an account of what stopping has cost, so that a rule that explores, or believes what is no
// longer so, cannot cost more than a share of the throughput (the idea of conservative bandits: Wu,
// Shariff, Lattimore and Szepesvari, 2016). The baseline is what batches are rewarded in which
// nobody was refused, the latest 16 or so. Each of them pays max_loss of it into the account; each
// batch that was stopped pays in what it was rewarded above (1 - max_loss) of the baseline, or
// takes out what it was rewarded below that. Should the next whole batch, to which those are added
// who were refused, be rewarded more than the baseline, then the stopped ones before it are taken
// to have missed half of the difference: while the load grows, stopping looks better than it is.
// While the account is empty, in one of 16 batches in any case, and after 15 stopped ones while no
// reward comes, nobody is refused, from which the bandit learns nothing, since it did not decide.
// The account never holds more than one batch's worth. So no warm-up is needed: the first batches
// are whole.
class StopAccount {
 public:
  explicit StopAccount(double max_loss) : max_loss_(max_loss) {}

  // Whether the batch that is being built may be stopped.
  bool MayStop() const {
    return max_loss_ >= 1 ||
           (credit_ > 0 && num_stopped_ < kMaxStoppedInTurn && num_unrewarded_ < kMaxStoppedInTurn);
  }
  // A batch was stopped, whose reward is to come.
  void NoteStop() { ++num_unrewarded_; }
  void Observe(double reward, bool stopped);

 private:
  static constexpr int32_t kMaxStoppedInTurn = 15;
  static constexpr double kBaselineRate = 1.0 / 16;

  const double max_loss_;
  double baseline_ = 0;
  double credit_ = 0;
  int64_t num_whole_ = 0;       // batches in which nobody was refused
  int32_t num_stopped_ = 0;     // since the last of them
  int32_t num_unrewarded_ = 0;  // stopped since the last reward
};

// Decides whether the best candidate joins the batch. A batch is built by questions,
//
//   ShouldAdd yes, ShouldAdd yes, ShouldAdd no | EndBuilding ... Reward
//
// ended by a no, by an empty queue, or by a full batch; who is then found not to join after all was
// not asked about (Withdraw). A reward is the decode throughput, in tokens per second, of the batch
// as built, and goes to all questions since the last one. What counts as such a step is the
// caller's to say (sched/decode_set/prefix_groups.h). Of questions that wait for a reward at most
// kMaxPending are remembered; further ones teach nothing. An empty batch always adds: no question
// of it is remembered. Random numbers come from the seed alone. Allocates nothing once constructed.
// Not thread-safe.
class StopPolicy {
 public:
  static constexpr int32_t kMaxPending = 4096;

  virtual ~StopPolicy() = default;

  virtual bool ShouldAdd(const StopQuestion& question) = 0;
  // Takes the last question back. REQUIRES: its answer was yes, and nothing has happened since.
  virtual void Withdraw() {}
  virtual void EndBuilding() {}
  virtual void Reward(double /*tokens_per_s*/) {}
  // What has been learned; null where nothing can be.
  virtual const StopTable* table() const { return nullptr; }
};

// `learned`: continue from there. REQUIRES: its rule is that of the options, or null.
std::unique_ptr<StopPolicy> MakeStopPolicy(const StopOptions& options,
                                           const StopTable* learned = nullptr);

}  // namespace skein
