#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "skein/stop_options.h"

namespace skein {

// The facts about the best candidate by which a stop policy decides.
struct StopQuestion {
  int32_t batch_size = 0;   // requests in the batch, without the candidate
  int32_t lost_tokens = 0;  // tokens by which the batch's shared prefix would shrink
  int32_t num_peers = 0;    // other waiting requests with the whole remaining prefix
};

// The state (b, delta, w) of a question, coarse enough to be learned. b and w are in bins that
// double: 0, 1, 2-3, 4-7, and so on. delta is in bins by thresholds.
class StopState {
 public:
  static constexpr int32_t kSizeBins = 17;  // the last bin is open: from 2^15
  // The least loss of each bin, in tokens. One KV block is negligible beside the memory that a step
  // reads. 128 tokens are the length of a question, 512 that of a short document, 2048 that of a
  // long one.
  static constexpr std::array<int32_t, 5> kLossBounds = {0, 1, 129, 513, 2049};
  static constexpr int32_t kNumStates =
      kSizeBins * static_cast<int32_t>(kLossBounds.size()) * kSizeBins;

  explicit StopState(const StopQuestion& question);
  explicit StopState(int32_t index) : index_(index) {}  // REQUIRES: in [0, kNumStates)

  int32_t index() const { return index_; }
  // The question with the least numbers in this state.
  StopQuestion least() const;

 private:
  int32_t index_ = 0;
};

// The knowledge of a learned policy: for each state and action, the number of its rewards and its
// value. The value is the mean reward for the bandit, Q for Q-learning. Rewards are decode tokens
// per second.
struct StopTable {
  enum Action { kStop = 0, kAdd = 1 };
  struct Cell {
    int64_t count = 0;
    double value = 0;
    bool operator==(const Cell&) const = default;
  };
  using Cells = std::array<Cell, 2>;

  StopRule rule = StopRule::kBandit;
  int64_t num_batches = 0;                                               // batches with a reward
  int64_t num_decisions = 0;                                             // decisions with a reward
  double best_reward = 0;                                                // the largest reward ever
  std::vector<Cells> cells = std::vector<Cells>(StopState::kNumStates);  // by StopState::index

  bool operator==(const StopTable&) const = default;

  // Writes the table as JSON; states without a reward are left out:
  //
  //   {"policy": "bandit", "batches": N, "decisions": N, "best_reward": R,
  //    "states": [{"batch": least b, "lost_tokens": least delta, "peers": least w,
  //                "add": {"count": N, "value": R}, "stop": {"count": N, "value": R}}, ...]}
  std::string ToJson() const;
  // Fails with kInvalidArgument, naming the member and the allowed values.
  static Result<StopTable> FromJson(std::string_view text);
};

}  // namespace skein
