#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sched/stop_table.h"

namespace skein {

// What the stop rules are made of. The text that describes them gives no constants; these are ours,
// and the tests of the learned ones show how far they may be moved and what happens beyond.
struct StopOptions {
  StopRule rule = StopRule::kBandit;
  // bandit, q-learning: false keeps to what was learned before. A question gets the answer of the
  // greater value, yes where either is unknown, and nothing is learned.
  bool learn = true;
  uint64_t seed = 0;  // of Q-learning's random decisions

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
  // ever seen, so that the constant has no unit. From 0.25 to 0.5 it learns a batch of 64 within
  // about 800 batches; below, it may keep the first stop that was better than a mixed batch; above,
  // it pays for exploring what it knows.
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

// Decides whether the best companion joins the batch. A batch is built by questions,
//
//   ShouldAdd yes, ShouldAdd yes, ShouldAdd no | EndBuilding ... Reward
//
// ended by a no, by an empty queue, or by a full batch. A reward is the decode throughput, in
// tokens per second, of the batch as built, and goes to all questions since the last one. What
// counts as such a step is the caller's to say (sched/flock.h). Of questions that wait for a reward
// at most kMaxPending are remembered; further ones teach nothing. An empty batch always adds: no
// question of it is remembered. Random numbers come from the seed alone. Allocates nothing once
// constructed. Not thread-safe.
class StopPolicy {
 public:
  static constexpr int32_t kMaxPending = 4096;

  virtual ~StopPolicy() = default;

  virtual bool ShouldAdd(const StopQuestion& question) = 0;
  virtual void EndBuilding() {}
  virtual void Reward(double /*tokens_per_s*/) {}
  // What has been learned; null where nothing can be.
  virtual const StopTable* table() const { return nullptr; }
};

// `learned`: continue from there. REQUIRES: its rule is that of the options, or null.
std::unique_ptr<StopPolicy> MakeStopPolicy(const StopOptions& options,
                                           const StopTable* learned = nullptr);

}  // namespace skein
