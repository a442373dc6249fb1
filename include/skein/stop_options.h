#pragma once

#include <cstdint>
#include <memory>

#include "skein/request.h"

namespace skein {

struct StopTable;  // sched/decode_set/stop_table.h

// The rule by which the decode set `prefix-homogeneous` stops adding requests to a batch
// (sched/decode_set/stop_policy.h).
enum class StopRule {
  kNever,
  kHeuristic,
  kBandit,
  kQLearning,
  kModel,  // by predicted throughput (sched/decode_set/group_turns.h)
};
// Whether the rule keeps a StopTable.
constexpr bool Learns(StopRule rule) {
  return rule == StopRule::kBandit || rule == StopRule::kQLearning;
}

// The constants of the stop rules. The paper (FEATHER) gives none; these are ours. The tests of the
// learned rules show the ranges in which the constants work, and the effects of values beyond.
struct StopOptions {
  StopRule rule = StopRule::kModel;
  // bandit, q-learning: if false, the rule uses the learned table and learns nothing. The answer is
  // then the one with the greater value, or to add if either value is unknown.
  bool learn = true;
  uint64_t seed = 0;  // for Q-learning's random decisions
  // bandit, q-learning: the share of the reward of batches without stops that stopping may cost. 1:
  // any share. Exploring stops count as much as stops by learned values. A limit of 1 % leaves room
  // for costs that rewards do not see, within the 2 % that `prefix-homogeneous` may lose to `fill`.
  double max_loss = 0.01;

  // model: the least predicted gain in tokens per second, as a share, at which stopping begins. It
  // ends when the gain falls below half of this share. The fit is off by some percent.
  double min_gain = 0.3;

  // heuristic: a further request may always join if the shared prefix loses at most this many
  // tokens. A question of this length beside documents costs little...
  int32_t max_lost_tokens = 128;
  // ...or if it loses at most this many while the batch has fewer than `small_batch` requests. A
  // decode step of a small batch reads the weights in any case, so a further row is nearly free...
  int32_t small_batch = 8;
  int32_t max_lost_tokens_small = 2048;
  // ...or if it loses at most this many while as many waiting requests have the shorter prefix as
  // are in the batch. These requests will then fill the batch.
  int32_t max_lost_tokens_peers = 1024;

  // bandit: a decision's score is mean + exploration * best * sqrt(ln S / n). `best` is the best
  // reward ever seen, so the constant has no unit. The mean is windowed: from the 256th reward of a
  // decision on, each reward counts 1 / 256 and earlier ones fade. With 0.25 to 0.5, the bandit
  // learns a batch of 64 within about 800 batches. With less, it may keep the first stop that was
  // better than a mixed batch. With more, it goes on to explore known decisions.
  double exploration = 0.3;

  // q-learning. The future of a decision ends with the batch that is being built, so it is not
  // discounted. The first rewards of a state are averaged (a rate of 1 / count) until the rate
  // falls to alpha.
  double alpha = 0.1;
  double gamma = 1.0;
  // A state's decisions are random with probability epsilon. Epsilon starts at `epsilon_start` and
  // is multiplied by `epsilon_decay` at each visit of that state, down to `epsilon_floor`. Thus a
  // state that is reached late is still explored, and a state that is in every batch soon is not.
  // Epsilon is under 5 % after 150 visits. The floor lets the rule learn when the load changes. It
  // is small because a batch of 64 takes 63 decisions.
  double epsilon_start = 1.0;
  double epsilon_decay = 0.98;
  double epsilon_floor = 0.001;
};

// The options of the decode set `prefix-homogeneous`.
struct PrefixGroupOptions {
  StopOptions stop;
  // A request is overdue if it has waited this long and if `max_wait_stretch` times as many
  // requests have joined since its arrival as waited before it. An overdue request joins next,
  // regardless of its prefix and of the stop rule. In the order first come, first served, the
  // stretch is 1. max_wait_us is at least 1, max_wait_stretch in [0, 1000]; with 0, the time alone
  // counts.
  TimeUs max_wait_us = 10'000'000;
  int32_t max_wait_stretch = 3;
  int32_t blocks_per_chunk = 1;
  // The table that a learning stop rule continues from; null: it starts anew. The table must be of
  // the rule in `stop`.
  std::shared_ptr<const StopTable> learned;
};

}  // namespace skein
