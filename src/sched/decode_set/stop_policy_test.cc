#include "sched/decode_set/stop_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "sched/decode_set/stop_constants.h"
#include "skein/choice_names.h"

namespace skein {
namespace {

StopOptions BoundedOf(StopRule rule) {
  StopOptions options;
  options.rule = rule;
  return options;
}

// Stopping may cost any share, so that the tests see only the learning of the rule.
StopOptions OptionsOf(StopRule rule) {
  StopOptions options = BoundedOf(rule);
  options.max_loss = 1;
  return options;
}

const StopTable::Cell& CellOf(const StopPolicy& policy, const StopQuestion& question,
                              StopTable::Action action) {
  return policy.table()->cells[StopState(question).index()][action];
}

TEST(StopState, BinsByDoublingAndByThresholds) {
  EXPECT_EQ(StopState({3, 0, 0}).index(), StopState({2, 0, 0}).index());
  EXPECT_NE(StopState({3, 0, 0}).index(), StopState({4, 0, 0}).index());
  EXPECT_EQ(StopState({1, 129, 0}).index(), StopState({1, 512, 0}).index());
  EXPECT_NE(StopState({1, 512, 0}).index(), StopState({1, 513, 0}).index());
  EXPECT_EQ(StopState({0, 0, 1 << 30}).index(), StopState({0, 0, 1 << 15}).index());
  for (int32_t index = 0; index < StopState::kNumStates; ++index) {
    EXPECT_EQ(StopState(StopState(index).least()).index(), index);
  }
}

TEST(StopPolicy, NeverAddsAlways) {
  const auto policy = MakeStopPolicy(OptionsOf(StopRule::kNever));
  EXPECT_TRUE(policy->ShouldAdd({.batch_size = 500, .lost_tokens = 10000}));
  EXPECT_EQ(policy->table(), nullptr);
}

TEST(StopPolicy, HeuristicFollowsItsThresholds) {
  const auto policy = MakeStopPolicy(OptionsOf(StopRule::kHeuristic));
  EXPECT_TRUE(policy->ShouldAdd({.batch_size = 0, .lost_tokens = 99999}));  // an empty batch
  EXPECT_TRUE(policy->ShouldAdd({.batch_size = 500, .lost_tokens = 0}));
  EXPECT_TRUE(policy->ShouldAdd({.batch_size = 7, .lost_tokens = 2048}));  // a small batch
  EXPECT_FALSE(policy->ShouldAdd({.batch_size = 7, .lost_tokens = 2049}));
  EXPECT_TRUE(policy->ShouldAdd({.batch_size = 8, .lost_tokens = 128}));
  EXPECT_FALSE(policy->ShouldAdd({.batch_size = 8, .lost_tokens = 129, .num_peers = 7}));
  EXPECT_TRUE(policy->ShouldAdd({.batch_size = 8, .lost_tokens = 1024, .num_peers = 8}));
  EXPECT_FALSE(policy->ShouldAdd({.batch_size = 8, .lost_tokens = 1025, .num_peers = 8}));
}

TEST(StopPolicy, LearnedOnesAddToAnEmptyBatchAndLearnNothingFromIt) {
  for (const StopRule rule : {StopRule::kBandit, StopRule::kQLearning}) {
    const auto policy = MakeStopPolicy(OptionsOf(rule));
    for (int i = 0; i < 50; ++i) {
      EXPECT_TRUE(policy->ShouldAdd({.batch_size = 0, .lost_tokens = 0}));
      policy->EndBuilding();
      policy->Reward(100);
    }
    EXPECT_EQ(policy->table()->num_decisions, 0);
    EXPECT_EQ(policy->table()->num_batches, 0);
  }
}

// The bandit's mean of a decision's rewards, by its definition. It is the plain mean up to the
// 256th reward; each later reward replaces a 256th part of it.
double WindowedMean(const std::vector<double>& rewards) {
  constexpr size_t kWindow = 256;
  double mean = 0;
  for (size_t i = 0; i < std::min(kWindow, rewards.size()); ++i) mean += rewards[i];
  mean /= static_cast<double>(std::min(kWindow, rewards.size()));
  for (size_t i = kWindow; i < rewards.size(); ++i) {
    mean = (mean * (kWindow - 1) + rewards[i]) / kWindow;
  }
  return mean;
}

// mean reward + c * best * sqrt(ln S / n), S being the number of all decisions, recomputed from the
// whole history. The rewards drop halfway through the test, so that a plain mean would differ.
TEST(StopPolicy, BanditTakesTheHigherUpperBound) {
  constexpr int kBatches = 2000;
  StopOptions options = OptionsOf(StopRule::kBandit);
  options.exploration = 0.3;
  const auto policy = MakeStopPolicy(options);
  Random random(7);
  std::map<int32_t, std::array<std::vector<double>, 2>> history;
  double num_decisions = 0, best = 0;
  const auto score = [&](const std::vector<double>& rewards) {
    if (rewards.empty()) return 1e300;
    const auto count = static_cast<double>(rewards.size());
    return WindowedMean(rewards) +
           0.3 * best * std::sqrt(std::log(std::max(1.0, num_decisions)) / count);
  };
  int num_stops = 0, num_close = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    std::vector<std::pair<int32_t, bool>> decisions;
    for (int i = 0; i < 3; ++i) {
      const StopQuestion question = {.batch_size = static_cast<int32_t>(random.Between(1, 3)),
                                     .lost_tokens = static_cast<int32_t>(random.Between(0, 1)),
                                     .num_peers = 0};
      const int32_t state = StopState(question).index();
      const auto& arms = history[state];
      const bool add = policy->ShouldAdd(question);
      const double gap = score(arms[StopTable::kAdd]) - score(arms[StopTable::kStop]);
      // A smaller gap could depend on the order of summation.
      const bool close = std::abs(gap) < 1e-6 && !arms[StopTable::kAdd].empty();
      num_close += close;
      if (!close) {
        ASSERT_EQ(add, gap >= 0) << "batch " << batch;
      }
      decisions.emplace_back(state, add);
      num_stops += !add;
    }
    const auto reward = static_cast<double>(batch < kBatches / 2 ? random.Between(500, 1000)
                                                                 : random.Between(100, 500));
    policy->Reward(reward);
    best = std::max(best, reward);
    for (const auto& [state, add] : decisions) {
      history[state][add ? StopTable::kAdd : StopTable::kStop].push_back(reward);
      num_decisions += 1;
    }
  }
  EXPECT_GT(num_stops, 100);
  EXPECT_LT(num_close, 100);
  int num_beyond_window = 0;
  for (const auto& [state, arms] : history) {
    for (const auto& rewards : arms) num_beyond_window += rewards.size() > 512;
  }
  EXPECT_GT(num_beyond_window, 2);
  EXPECT_EQ(policy->table()->num_decisions, 3 * kBatches);
  EXPECT_EQ(policy->table()->num_batches, kBatches);
}

// Q += alpha (r + gamma max Q' - Q). Only the last decision of the batch has the reward r. The
// update goes from the last question back to the first.
TEST(StopPolicy, QLearningUpdatesABuiltBatchFromItsEnd) {
  StopOptions options = OptionsOf(StopRule::kQLearning);
  options.alpha = 0.25;
  options.gamma = 0.5;
  options.epsilon_start = 0;  // no random decision
  options.epsilon_floor = 0;
  const auto policy = MakeStopPolicy(options);
  const StopQuestion first = {.batch_size = 1}, second = {.batch_size = 2};
  const auto build = [&](double reward) {
    EXPECT_TRUE(policy->ShouldAdd(first));
    EXPECT_TRUE(policy->ShouldAdd(second));
    policy->EndBuilding();
    policy->Reward(reward);
  };
  double q_first = 0, q_second = 0;
  for (int n = 1; n <= 6; ++n) {
    const double reward = 100.0 * n;
    build(reward);
    const double rate = std::max(0.25, 1.0 / n);
    q_second += rate * (reward - q_second);
    q_first += rate * (0.5 * q_second - q_first);
    EXPECT_DOUBLE_EQ(CellOf(*policy, second, StopTable::kAdd).value, q_second);
    EXPECT_DOUBLE_EQ(CellOf(*policy, first, StopTable::kAdd).value, q_first);
  }
  EXPECT_EQ(CellOf(*policy, first, StopTable::kAdd).count, 6);
  EXPECT_EQ(CellOf(*policy, first, StopTable::kStop).count, 0);
}

TEST(StopPolicy, QLearningsEpisodesEndWhereTheBuildingDoes) {
  StopOptions options = OptionsOf(StopRule::kQLearning);
  options.epsilon_start = options.epsilon_floor = 0;
  const auto policy = MakeStopPolicy(options);
  // Two batches before one reward: the first one's last decision gets the reward, not the second Q.
  EXPECT_TRUE(policy->ShouldAdd({.batch_size = 1}));
  policy->EndBuilding();
  EXPECT_TRUE(policy->ShouldAdd({.batch_size = 2}));
  policy->EndBuilding();
  policy->Reward(10);
  policy->Reward(999);  // no decision waits for it
  EXPECT_EQ(CellOf(*policy, {.batch_size = 1}, StopTable::kAdd).value, 10);
  EXPECT_EQ(CellOf(*policy, {.batch_size = 2}, StopTable::kAdd).value, 10);
  EXPECT_EQ(policy->table()->num_batches, 1);
}

TEST(StopPolicy, WhatIsWithdrawnWasNotAsked) {
  StopOptions options = OptionsOf(StopRule::kQLearning);
  options.epsilon_start = options.epsilon_floor = 0;
  const auto policy = MakeStopPolicy(options);
  EXPECT_TRUE(policy->ShouldAdd({.batch_size = 1}));
  EXPECT_TRUE(policy->ShouldAdd({.batch_size = 2}));
  policy->Withdraw();
  EXPECT_TRUE(policy->ShouldAdd({.batch_size = 2, .lost_tokens = 1}));  // follows the first
  policy->EndBuilding();
  EXPECT_TRUE(policy->ShouldAdd({.batch_size = 4}));
  policy->Withdraw();
  EXPECT_TRUE(policy->ShouldAdd({.batch_size = 0}));  // this question is not remembered
  policy->Withdraw();
  policy->EndBuilding();
  policy->Reward(10);
  EXPECT_EQ(policy->table()->num_decisions, 2);
  EXPECT_EQ(CellOf(*policy, {.batch_size = 1}, StopTable::kAdd).value, 10);
  EXPECT_EQ(CellOf(*policy, {.batch_size = 2}, StopTable::kAdd).count, 0);
  EXPECT_EQ(CellOf(*policy, {.batch_size = 2, .lost_tokens = 1}, StopTable::kAdd).value, 10);
}

// A batch whose only question was withdrawn does not count as full.
TEST(StopPolicy, WhatIsWithdrawnPaysNothingIntoTheAccount) {
  StopTable table;
  const StopQuestion bad = {.batch_size = 10, .lost_tokens = 1000, .num_peers = 1};
  table.cells[StopState(bad).index()] = {{{5, 200.0}, {5, 100.0}}};
  StopOptions options = BoundedOf(StopRule::kBandit);
  options.learn = false;
  const auto policy = MakeStopPolicy(options, &table);
  EXPECT_TRUE(policy->ShouldAdd(bad));  // the account is empty
  policy->Withdraw();
  policy->Reward(100);
  EXPECT_TRUE(policy->ShouldAdd(bad));
  policy->Reward(100);
  EXPECT_FALSE(policy->ShouldAdd(bad));
}

// At first every decision is random; later almost none is.
TEST(StopPolicy, EpsilonFallsWithTheVisitsOfAState) {
  const StopOptions options = OptionsOf(StopRule::kQLearning);
  const auto policy = MakeStopPolicy(options);
  const auto stops_in = [&](int num_batches) {
    int num_stops = 0;
    for (int batch = 0; batch < num_batches; ++batch) {
      const bool add = policy->ShouldAdd({.batch_size = 1});
      policy->EndBuilding();
      policy->Reward(add ? 2 : 1);
      num_stops += !add;
    }
    return num_stops;
  };
  const int early = stops_in(20);
  EXPECT_GT(early, 3);
  EXPECT_LT(early, 17);
  stops_in(400);
  EXPECT_LT(stops_in(1000), 10);  // half of the floor, which is 1 in 1,000
}

TEST(StopPolicy, RemembersABoundedNumberOfQuestions) {
  const auto policy = MakeStopPolicy(OptionsOf(StopRule::kBandit));
  for (int i = 0; i < 3 * StopPolicy::kMaxPending; ++i) policy->ShouldAdd({.batch_size = 1});
  policy->Reward(1);
  EXPECT_EQ(policy->table()->num_decisions, StopPolicy::kMaxPending);
}

// A machine whose decode steps take a fixed time, a time for each row, and a time for KV reads. A
// batch with one shared prefix reads this prefix once. 32 requests share a prefix of 2,000 tokens;
// 32 others do not.
class Machine {
 public:
  Machine(double foreign_ms, uint64_t seed) : foreign_ms_(foreign_ms), random_(seed) {}

  // Builds one batch by the policy. Returns the batch's throughput with a little noise.
  double Build(StopPolicy* policy) {
    int32_t size = 0;
    for (; size < 64; ++size) {
      const bool foreign = size >= 32;
      const StopQuestion question = {.batch_size = size,
                                     .lost_tokens = size == 32 ? 2000 : 0,
                                     .num_peers = foreign ? 63 - size : 31 - size};
      if (!policy->ShouldAdd(question)) break;
    }
    policy->EndBuilding();
    const double reward = Throughput(size) * (0.97 + 0.06 * random_.Uniform());
    policy->Reward(reward);
    return reward;
  }

  double Throughput(int32_t size) const {
    // In a mixed batch, each row reads its prefix separately.
    const double ms = 10 + 0.05 * size + (size > 32 ? foreign_ms_ * size : 0);
    return size / ms * 1000;
  }

  double Best() const { return std::max(Throughput(32), Throughput(64)); }

  // The throughput of the last 200 of `num_batches` batches on average, as a share of the best.
  double Share(StopPolicy* policy, int num_batches) {
    double sum = 0;
    for (int batch = 0; batch < num_batches; ++batch) {
      const double reward = Build(policy);
      if (batch >= num_batches - 200) sum += reward;
    }
    return sum / 200 / Best();
  }

 private:
  const double foreign_ms_;
  Random random_;
};

double ShareOf(const StopOptions& options, double foreign_ms, int num_batches) {
  const auto policy = MakeStopPolicy(options);
  return Machine(foreign_ms, options.seed + 1).Share(policy.get(), num_batches);
}

// Both learned policies find out whether a mixed batch pays.
TEST(StopPolicy, LearnsWhetherMixingPays) {
  for (const StopRule rule : {StopRule::kBandit, StopRule::kQLearning}) {
    for (const double foreign_ms : {0.0, 0.2, 0.5}) {
      for (uint64_t seed = 1; seed <= 5; ++seed) {
        StopOptions options = OptionsOf(rule);
        options.seed = seed;
        EXPECT_GT(ShareOf(options, foreign_ms, 1500), 0.94)
            << NameOf(rule) << " " << foreign_ms << " seed " << seed;
      }
    }
  }
}

// The rules learn with constants from the whole range that StopOptions recommends.
TEST(StopPolicy, LearnsWithOtherConstants) {
  for (const double foreign_ms : {0.0, 0.2, 0.5}) {
    for (const double exploration : {0.25, 0.3, 0.4, 0.5}) {
      StopOptions options = OptionsOf(StopRule::kBandit);
      options.exploration = exploration;
      EXPECT_GT(ShareOf(options, foreign_ms, 1500), 0.94) << exploration << " " << foreign_ms;
    }
    const StopOptions q = OptionsOf(StopRule::kQLearning);
    for (const double factor : {0.5, 1.0, 2.0}) {
      StopOptions alpha = q, decay = q, floor = q;
      alpha.alpha *= factor;
      decay.epsilon_decay = std::pow(q.epsilon_decay, factor);
      floor.epsilon_floor *= factor;
      EXPECT_GT(ShareOf(alpha, foreign_ms, 3000), 0.94) << "alpha " << factor << " " << foreign_ms;
      EXPECT_GT(ShareOf(decay, foreign_ms, 3000), 0.85) << "decay " << factor << " " << foreign_ms;
      EXPECT_GT(ShareOf(floor, foreign_ms, 3000), 0.9) << "floor " << factor << " " << foreign_ms;
    }
  }
}

// Outside of that range, learning fails. A bandit that hardly explores keeps the first stop that
// beat its earlier rewards. Q-learning mostly stops before a dip: a batch that slows down when it
// is first mixed, and pays again only when it is full.
TEST(StopPolicy, ExploringTooLittleKeepsAPoorStop) {
  StopOptions timid = OptionsOf(StopRule::kBandit);
  timid.exploration = 0.05;
  EXPECT_LT(ShareOf(timid, 0.5, 1500), 0.8);
  EXPECT_GT(ShareOf(OptionsOf(StopRule::kBandit), 0.05, 1500), 0.94);
  EXPECT_LT(ShareOf(OptionsOf(StopRule::kQLearning), 0.05, 1500), 0.9);
}

TEST(StopAccount, PaysForStopsWithWhatIsLeftOver) {
  StopAccount account(0.1);
  EXPECT_FALSE(account.MayStop());
  account.Observe(100, false);  // baseline 100, 10 in the account
  EXPECT_TRUE(account.MayStop());
  account.Observe(95, true);  // 5 above the expected 90: 15 in the account
  account.Observe(70, true);  // 20 below the expected 90: -5
  EXPECT_FALSE(account.MayStop());
  account.Observe(50, false);  // baseline 75, no more than before: 2.5
  EXPECT_TRUE(account.MayStop());
  account.Observe(1000, true);  // the account holds at most one batch's worth
  account.Observe(0.9 * 75 - 74, true);
  EXPECT_TRUE(account.MayStop());
  account.Observe(0.9 * 75 - 2, true);
  EXPECT_FALSE(account.MayStop());
}

TEST(StopAccount, LooksAtTheBaselineNowAndThen) {
  StopAccount account(0.01);
  account.Observe(100, false);
  for (int i = 0; i < 15; ++i) {
    EXPECT_TRUE(account.MayStop());
    account.Observe(200, true);
  }
  EXPECT_FALSE(account.MayStop());
  account.Observe(100, false);
  EXPECT_TRUE(account.MayStop());
}

TEST(StopAccount, LosesNothingUnseen) {
  StopAccount account(0.01);
  account.Observe(100, false);
  for (int i = 0; i < 15; ++i) {
    EXPECT_TRUE(account.MayStop());
    account.NoteStop();
  }
  EXPECT_FALSE(account.MayStop());
  account.Observe(100, true);
  EXPECT_TRUE(account.MayStop());
}

// While rewards grow from batch to batch, stopped batches look good compared with earlier ones.
TEST(StopAccount, TakesBackWhatAGrowingLoadSeemedToGain) {
  StopAccount account(0.1);
  account.Observe(100, false);  // 10 in the account
  account.Observe(98, true);    // 18 in the account
  account.Observe(104, true);   // 32 in the account
  account.Observe(150, false);  // each stopped batch missed 25: 32 - 2 * 0.9 * 25 = -13; then 12.5
  EXPECT_FALSE(account.MayStop());
  account.Observe(125, false);
  EXPECT_TRUE(account.MayStop());
}

// The mean reward of all batches from the first on, as a share of the reward without stops.
double ShareOfWhole(const StopOptions& options, double foreign_ms, int num_batches) {
  const auto policy = MakeStopPolicy(options);
  Machine machine(foreign_ms, options.seed + 1);
  double sum = 0;
  for (int batch = 0; batch < num_batches; ++batch) sum += machine.Build(policy.get());
  return sum / num_batches / machine.Throughput(64);
}

// Here, every stop loses throughput. The bound holds from the first batch on.
TEST(StopPolicy, StoppingCostsNoMoreThanItsShare) {
  for (const StopRule rule : {StopRule::kBandit, StopRule::kQLearning}) {
    for (const int num_batches : {100, 1000, 10'000}) {
      for (const double max_loss : {0.0, 0.01, 0.05}) {
        StopOptions options = BoundedOf(rule);
        options.max_loss = max_loss;
        // The account may be overdrawn by one stop; the rest is the noise of rewards.
        const double least = 1 - max_loss - 1.0 / num_batches - 0.004;
        EXPECT_GT(ShareOfWhole(options, 0, num_batches), least)
            << NameOf(rule) << " " << max_loss << " " << num_batches;
      }
    }
    EXPECT_LT(ShareOfWhole(OptionsOf(rule), 0, 100), 0.8) << NameOf(rule);
  }
}

// Batches get no reward if they run beside so much prefill work that none of their steps counts.
TEST(StopPolicy, WithoutRewardsItSoonRefusesNobody) {
  for (const StopRule rule : {StopRule::kBandit, StopRule::kQLearning}) {
    StopTable table;
    table.rule = rule;
    const StopQuestion bad = {.batch_size = 10, .lost_tokens = 1000, .num_peers = 1};
    table.cells[StopState(bad).index()] = {{{5, 200.0}, {5, 100.0}}};
    StopOptions options = BoundedOf(rule);
    options.learn = false;
    const auto policy = MakeStopPolicy(options, &table);
    const auto adds = [&] {
      const bool add = policy->ShouldAdd(bad);
      policy->EndBuilding();
      return add;
    };
    EXPECT_TRUE(adds());  // the account is empty
    for (int i = 0; i < 3; ++i) {
      policy->Reward(100);
      for (int batch = 0; batch < 15; ++batch) EXPECT_FALSE(adds()) << NameOf(rule) << " " << batch;
      for (int batch = 0; batch < 100; ++batch) EXPECT_TRUE(adds()) << NameOf(rule) << " " << batch;
    }
  }
}

// With an account, the rules still learn to stop if stops pay, but later.
TEST(StopPolicy, LearnsWithinItsMeans) {
  for (const StopRule rule : {StopRule::kBandit, StopRule::kQLearning}) {
    for (const double foreign_ms : {0.0, 0.2, 0.5}) {
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        StopOptions options = BoundedOf(rule);
        options.seed = seed;
        // One batch in 16 is not stopped, which costs up to 3 %.
        EXPECT_GT(ShareOf(options, foreign_ms, 20'000), 0.9) << NameOf(rule) << " " << foreign_ms;
      }
    }
  }
}

TEST(StopPolicy, OneSeedReproducesARun) {
  std::vector<std::string> tables;
  for (const uint64_t seed : {4, 4, 5}) {
    StopOptions options = OptionsOf(StopRule::kQLearning);
    options.seed = seed;
    const auto policy = MakeStopPolicy(options);
    Machine machine(0.5, 1);
    for (int batch = 0; batch < 100; ++batch) machine.Build(policy.get());
    tables.push_back(policy->table()->ToJson());
  }
  EXPECT_EQ(tables[0], tables[1]);
  EXPECT_NE(tables[0], tables[2]);
}

TEST(StopTable, SurvivesBeingWrittenAndRead) {
  for (const StopRule rule : {StopRule::kBandit, StopRule::kQLearning}) {
    const auto policy = MakeStopPolicy(OptionsOf(rule));
    Machine machine(0.5, 3);
    for (int batch = 0; batch < 200; ++batch) machine.Build(policy.get());
    const std::string text = policy->table()->ToJson();
    const Result<StopTable> read = StopTable::FromJson(text);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*policy->table(), read.value());
    // A policy that starts from the saved table decides as the first policy would have.
    const auto resumed = MakeStopPolicy(OptionsOf(rule), &read.value());
    EXPECT_EQ(resumed->table()->ToJson(), text);
  }
}

TEST(StopTable, RefusesWhatIsNoTable) {
  const auto message = [](const std::string& text) {
    const Result<StopTable> read = StopTable::FromJson(text);
    return read.ok() ? std::string("ok") : read.status().message();
  };
  const auto with = [](const std::string& members) {
    return R"({"policy": "bandit", "batches": 1, "decisions": 2, "best_reward": 3.5,
"states": [)" +
           members + "]}";
  };
  const std::string cell = R"({"count": 1, "value": 2})";
  const auto state = [&](const std::string& batch, const std::string& stop) {
    return R"({"batch": )" + batch + R"(, "lost_tokens": 129, "peers": 0, "add": )" + cell +
           R"(, "stop": )" + stop + "}";
  };
  EXPECT_EQ(message(with(state("4", cell))), "ok");
  EXPECT_EQ(message("[]"), "a stop policy's table must be a JSON object");
  EXPECT_EQ(message("{\"policy\": \"bandit\""), "a stop policy's table must be a JSON object");
  EXPECT_EQ(message(R"({"policy": "never"})"), "'policy' must be 'bandit' or 'q-learning'");
  EXPECT_EQ(message(R"({"policy": "bandit", "batches": -1})"),
            "'batches' must be an integer in [0, 9007199254740992]");
  EXPECT_EQ(message(with("7")), "'states[0]' must be an object");
  EXPECT_EQ(message(with(state("4", "1"))), "'states[0].stop' must be an object");
  EXPECT_EQ(message(with(state("4", cell) + "," + state("4", cell))),
            "'states[1]' must be another state than those before");
  EXPECT_NE(message(with(state("5", cell))).find("'states[0]' must be the least of a state"),
            std::string::npos);
  EXPECT_EQ(message(with(state("4", R"({"count": 1, "value": -2})"))),
            "'states[0].stop.value' must be a number in [0, 1000000000000000]");
  // Counts of several states are added up.
  EXPECT_EQ(message(with(state("4", R"({"count": 9223372036854775807, "value": 2})"))),
            "'states[0].stop.count' must be an integer in [0, 9007199254740992]");
  EXPECT_EQ(message(with(state("4", R"({"count": 9007199254740992, "value": 2})"))), "ok");
  // A value other than 0 is refused if there was no reward.
  EXPECT_EQ(message(with(state("4", R"({"count": 0, "value": 2})"))),
            "'states[0].stop.value' must be 0 where count is 0");
  EXPECT_EQ(message(with(state("4", R"({"count": 0, "value": 0.0})"))), "ok");
}

TEST(StopRule, NamesAndBack) {
  for (const StopRule rule : {StopRule::kNever, StopRule::kHeuristic, StopRule::kBandit,
                              StopRule::kQLearning, StopRule::kModel}) {
    EXPECT_EQ(ChoiceOf<StopRule>(NameOf(rule)), rule);
  }
  EXPECT_EQ(ChoiceOf<StopRule>("often"), std::nullopt);
  EXPECT_EQ(ListOfChoices<StopRule>(), "never, heuristic, bandit, q-learning, model");
}

TEST(StopConstants, AreSetByName) {
  StopOptions options;
  ASSERT_TRUE(SetStopConstants("", &options).ok());
  EXPECT_EQ(StopConstants(options), StopConstants(StopOptions()));
  ASSERT_TRUE(SetStopConstants("max-lost=64,exploration=0.25,learn=0", &options).ok());
  EXPECT_EQ(options.max_lost_tokens, 64);
  EXPECT_EQ(options.exploration, 0.25);
  EXPECT_FALSE(options.learn);
  StopOptions again;
  ASSERT_TRUE(SetStopConstants(StopConstants(options), &again).ok());
  EXPECT_EQ(StopConstants(again), StopConstants(options));
}

TEST(StopConstants, WrongOnesAreNamed) {
  const auto message = [](const char* text) {
    StopOptions options;
    return SetStopConstants(text, &options).message();
  };
  EXPECT_EQ(message("max-lost=1.5"),
            "stop_constants: max-lost is '1.5', must be an integer in [0, 1073741824]");
  EXPECT_EQ(message("gamma="), "stop_constants: gamma is '', must be a number in [0, 1]");
  EXPECT_EQ(message("alpha=nan"), "stop_constants: alpha is 'nan', must be a number in [0, 1]");
  EXPECT_NE(message("beta=1").find("must be name=value of: max-lost, "), std::string::npos);
  EXPECT_NE(message("alpha=1,,").find("has ''"), std::string::npos);
}

TEST(StopPolicy, WithoutLearningItKeepsToWhatItKnows) {
  for (const StopRule rule : {StopRule::kBandit, StopRule::kQLearning}) {
    StopTable table;
    table.rule = rule;
    const StopQuestion bad = {.batch_size = 10, .lost_tokens = 1000, .num_peers = 1};
    const StopQuestion good = {.batch_size = 10, .lost_tokens = 1000, .num_peers = 100};
    table.cells[StopState(bad).index()] = {{{5, 200.0}, {5, 100.0}}};
    table.cells[StopState(good).index()] = {{{5, 100.0}, {5, 200.0}}};
    StopOptions options = OptionsOf(rule);
    options.learn = false;
    const auto policy = MakeStopPolicy(options, &table);
    for (int i = 0; i < 100; ++i) {
      EXPECT_FALSE(policy->ShouldAdd(bad));
      EXPECT_TRUE(policy->ShouldAdd(good));
      EXPECT_TRUE(policy->ShouldAdd({.batch_size = 3}));  // no value is known
      policy->EndBuilding();
      policy->Reward(1e6);
    }
    EXPECT_EQ(*policy->table(), table);
  }
}

}  // namespace
}  // namespace skein
