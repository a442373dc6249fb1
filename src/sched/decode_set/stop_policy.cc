#include "sched/decode_set/stop_policy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/random.h"

namespace skein {
namespace {

class NeverStop final : public StopPolicy {
 public:
  bool ShouldAdd(const StopQuestion&) override { return true; }
};

class HeuristicStop final : public StopPolicy {
 public:
  explicit HeuristicStop(const StopOptions& options) : options_(options) {}

  bool ShouldAdd(const StopQuestion& question) override {
    const int32_t lost = question.lost_tokens;
    if (question.batch_size == 0 || lost <= 0) return true;
    if (question.batch_size < options_.small_batch) return lost <= options_.max_lost_tokens_small;
    if (lost <= options_.max_lost_tokens) return true;
    return lost <= options_.max_lost_tokens_peers && question.num_peers >= question.batch_size;
  }

 private:
  const StopOptions options_;
};

// The common part of the learned policies: the table, and the decisions that wait for a reward.
class LearnedStop : public StopPolicy {
 public:
  LearnedStop(const StopOptions& options, const StopTable* learned)
      : options_(options), account_(options.max_loss) {
    if (learned != nullptr) table_ = *learned;
    SKEIN_CHECK(learned == nullptr || table_.rule == options.rule);
    table_.rule = options.rule;
    pending_.reserve(kMaxPending);
  }

  bool ShouldAdd(const StopQuestion& question) final {
    asked_before_ = asked_;
    num_pending_before_ = pending_.size();
    if (question.batch_size == 0) return true;
    const int32_t state = StopState(question).index();
    const StopTable::Cells& cells = table_.cells[state];
    asked_ = true;
    StopTable::Action action = StopTable::kAdd;
    if (account_.MayStop()) {
      action = options_.learn ? Choose(cells) : Known(cells);
    } else if (!LearnsFromOthers()) {
      return true;
    }
    if (action == StopTable::kStop) {
      stopped_ = true;
      account_.NoteStop();
    }
    if (options_.learn) Remember(state, action);
    return action == StopTable::kAdd;
  }

  void Withdraw() final {
    asked_ = asked_before_;
    if (pending_.size() == num_pending_before_) return;
    pending_.pop_back();
    // The decision before the withdrawn one, if it is of the same batch, may be followed by
    // another.
    building_ = !pending_.empty() && pending_.back().next_state >= 0;
    if (building_) pending_.back().next_state = -1;
  }

  void EndBuilding() final { building_ = false; }

  void Reward(double tokens_per_s) final {
    building_ = false;
    if (asked_) account_.Observe(tokens_per_s, stopped_);
    asked_ = stopped_ = false;
    if (pending_.empty()) return;  // also if the policy does not learn
    table_.best_reward = std::max(table_.best_reward, tokens_per_s);
    table_.num_decisions += std::ssize(pending_);
    ++table_.num_batches;
    // Goes backwards, so that a value reaches all decisions of the batch in one pass.
    for (auto it = pending_.rbegin(); it != pending_.rend(); ++it) Learn(*it, tokens_per_s);
    pending_.clear();
  }

  const StopTable* table() const final { return &table_; }

 protected:
  struct Decision {
    int32_t state = 0;
    StopTable::Action action = StopTable::kStop;
    int32_t next_state = -1;  // state of the batch's next question; -1: this is the last
  };

  virtual StopTable::Action Choose(const StopTable::Cells& cells) = 0;
  // Whether the policy learns from decisions that the account made in its place.
  virtual bool LearnsFromOthers() const = 0;
  virtual void Learn(const Decision& decision, double reward) = 0;

  const StopOptions options_;
  StopTable table_;

 private:
  // The action with the greater value; kAdd if either value is unknown.
  static StopTable::Action Known(const StopTable::Cells& cells) {
    const StopTable::Cell &add = cells[StopTable::kAdd], &stop = cells[StopTable::kStop];
    const bool adds = add.count == 0 || stop.count == 0 || add.value >= stop.value;
    return adds ? StopTable::kAdd : StopTable::kStop;
  }

  void Remember(int32_t state, StopTable::Action action) {
    if (pending_.size() == kMaxPending) {
      building_ = false;
      return;
    }
    if (building_) pending_.back().next_state = state;
    pending_.push_back({state, action});
    building_ = action == StopTable::kAdd;
  }

  StopAccount account_;
  std::vector<Decision> pending_;
  bool building_ = false;  // whether another decision of the batch may follow the last
  bool asked_ = false;     // since the last reward
  bool stopped_ = false;
  // The state before the last question:
  bool asked_before_ = false;
  size_t num_pending_before_ = 0;
};

// Upper confidence bounds over (state, action): UCB1 (Auer, Cesa-Bianchi and Fischer, 2002) with c
// for its square root of 2. S is the number of all decisions.
class BanditStop final : public LearnedStop {
 public:
  using LearnedStop::LearnedStop;

 private:
  // The mean covers about the latest 256 rewards. A decision's value depends on the decisions that
  // follow it, and these improve with time. They must be the policy's own decisions.
  static constexpr double kLeastRate = 1.0 / 256;
  bool LearnsFromOthers() const override { return false; }

  StopTable::Action Choose(const StopTable::Cells& cells) override {
    return Score(cells[StopTable::kAdd]) >= Score(cells[StopTable::kStop]) ? StopTable::kAdd
                                                                           : StopTable::kStop;
  }

  double Score(const StopTable::Cell& cell) const {
    if (cell.count == 0) return std::numeric_limits<double>::infinity();
    const double log_all = std::log(std::max(1.0, static_cast<double>(table_.num_decisions)));
    const double bonus = std::sqrt(log_all / static_cast<double>(cell.count));
    return cell.value + options_.exploration * table_.best_reward * bonus;
  }

  void Learn(const Decision& decision, double reward) override {
    StopTable::Cell& cell = table_.cells[decision.state][decision.action];
    ++cell.count;
    const double rate = std::max(kLeastRate, 1.0 / static_cast<double>(cell.count));
    cell.value += rate * (reward - cell.value);
  }
};

// Q += alpha (r + gamma max Q' - Q). The reward belongs to the complete batch. So r is 0 except for
// the last decision, which has no Q'.
class QLearningStop final : public LearnedStop {
 public:
  QLearningStop(const StopOptions& options, const StopTable* learned)
      : LearnedStop(options, learned), random_(options.seed) {}

 private:
  StopTable::Action Choose(const StopTable::Cells& cells) override {
    const int64_t visits = cells[0].count + cells[1].count;
    const double epsilon =
        options_.epsilon_start * std::pow(options_.epsilon_decay, static_cast<double>(visits));
    if (random_.Uniform() < std::max(epsilon, options_.epsilon_floor)) {
      return random_.OneIn(2) ? StopTable::kAdd : StopTable::kStop;
    }
    return cells[StopTable::kAdd].value >= cells[StopTable::kStop].value ? StopTable::kAdd
                                                                         : StopTable::kStop;
  }

  bool LearnsFromOthers() const override { return true; }  // it asks for the best that may follow

  void Learn(const Decision& decision, double reward) override {
    double target = reward;
    if (decision.next_state >= 0) {
      const StopTable::Cells& next = table_.cells[decision.next_state];
      target = options_.gamma * std::max(next[0].value, next[1].value);
    }
    StopTable::Cell& cell = table_.cells[decision.state][decision.action];
    ++cell.count;
    const double rate = std::max(options_.alpha, 1.0 / static_cast<double>(cell.count));
    cell.value += rate * (target - cell.value);
  }

  Random random_;
};

}  // namespace

void StopAccount::Observe(double reward, bool stopped) {
  num_unrewarded_ = 0;
  if (stopped) {
    ++num_stopped_;
    credit_ += reward - (1 - max_loss_) * baseline_;
  } else {
    credit_ -= num_stopped_ * (1 - max_loss_) * std::max(0.0, reward - baseline_) / 2;
    num_stopped_ = 0;
    const double rate = std::max(kBaselineRate, 1.0 / static_cast<double>(++num_whole_));
    baseline_ += rate * (reward - baseline_);
    credit_ += max_loss_ * baseline_;
  }
  credit_ = std::min(credit_, baseline_);
}

std::unique_ptr<StopPolicy> MakeStopPolicy(const StopOptions& options, const StopTable* learned) {
  switch (options.rule) {
    case StopRule::kNever:
    case StopRule::kModel:  // GroupTurns decides
      return std::make_unique<NeverStop>();
    case StopRule::kHeuristic:
      return std::make_unique<HeuristicStop>(options);
    case StopRule::kBandit:
      return std::make_unique<BanditStop>(options, learned);
    case StopRule::kQLearning:
      return std::make_unique<QLearningStop>(options, learned);
  }
  SKEIN_CHECK(false);
}

}  // namespace skein
