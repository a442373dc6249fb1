#include "base/rank_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/random.h"

namespace skein {
namespace {

TEST(RankGateTest, TheLeadingRankDecidesWhereAllStop) {
  RankGate gate;
  EXPECT_TRUE(gate.Enter(0));
  EXPECT_TRUE(gate.Enter(1));  // the same rank
  gate.Stop();
  EXPECT_FALSE(gate.Enter(2));
  EXPECT_TRUE(gate.Enter(0));  // another, which is behind
  EXPECT_TRUE(gate.Enter(1));
  EXPECT_FALSE(gate.Enter(2));
  gate.GoOn();
  EXPECT_TRUE(gate.Enter(2));
  gate.Stop();
  EXPECT_TRUE(gate.Enter(2));
  EXPECT_FALSE(gate.Enter(3));
}

// Ranks in threads run a task of operators, each of which ends in an all-reduce (a barrier);
// signals come from a thread of their own at random moments. A rank that stopped alone would leave
// the others in the barrier for ever; what the all-reduces add up tells whether all ranks were at
// the same operator.
class Ranks {
 public:
  Ranks(int num_ranks, int64_t num_operators)
      : num_operators_(num_operators),
        at_(num_ranks),
        all_reduce_(num_ranks),
        still_(num_ranks, Resumer{this}) {}

  // Runs the task, stopping at random moments. Returns how often it stopped.
  int64_t Run(uint64_t seed) {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < at_.size(); ++rank) {
      threads.emplace_back([this, rank] { RunRank(rank); });
    }
    std::thread signals([this, seed] {
      Random random(seed);
      while (!ended_.load()) {
        const int64_t stops = num_stops_.load();
        gate_.Stop();
        while (num_stops_.load() == stops && !ended_.load()) std::this_thread::yield();
        for (int64_t i = random.Between(0, 200); i > 0; --i) pause_.fetch_add(1);
      }
    });
    for (std::thread& thread : threads) thread.join();
    ended_ = true;
    signals.join();
    return num_stops_;
  }

  bool met() const { return met_; }

 private:
  // What the last rank to stand still does for all.
  struct Resumer {
    Ranks* ranks;
    void operator()() noexcept { ranks->Resume(); }
  };

  void RunRank(size_t rank) {
    int64_t& at = at_[rank];
    while (at < num_operators_) {
      if (gate_.Enter(at)) {
        all_reduce_.arrive_and_wait();
        ++at;
      } else {
        still_.arrive_and_wait();
      }
    }
  }

  void Resume() {
    for (const int64_t at : at_) met_ = met_ && at == at_.front();
    gate_.GoOn();
    ++num_stops_;
  }

  const int64_t num_operators_;
  RankGate gate_;
  std::vector<int64_t> at_;
  std::barrier<> all_reduce_;
  std::barrier<Resumer> still_;
  bool met_ = true;
  std::atomic<int64_t> num_stops_{0};
  std::atomic<int64_t> pause_{0};
  std::atomic<bool> ended_{false};
};

TEST(RankGateTest, ManyStopsAtRandomMomentsNeverDeadlock) {
  int64_t num_stops = 0;
  uint64_t seed = 0;
  for (const int num_ranks : {2, 3, 4}) {
    const int64_t wanted = num_stops + 34'000;
    while (num_stops < wanted) {
      Ranks ranks(num_ranks, 20'000);
      num_stops += ranks.Run(++seed);
      ASSERT_TRUE(ranks.met());
    }
  }
  EXPECT_GE(num_stops, 100'000);
}

}  // namespace
}  // namespace skein
