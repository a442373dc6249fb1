#include "sched/order/rank_timers.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace skein {
namespace {

class RankTimersTest : public ::testing::Test {
 protected:
  RankTimersTest() {
    for (int i = 0; i < 3; ++i) {
      requests_[i].arrival = i;
      sequences_.push_back(std::make_unique<Sequence>(&requests_[i], 0, PrefixScope{}));
    }
  }
  Sequence* At(int i) { return sequences_[i].get(); }

  RequestRecord requests_[3];
  std::vector<std::unique_ptr<Sequence>> sequences_;
  RankTimers timers_;
};

TEST_F(RankTimersTest, TheEarliestIsTakenFirstThenByArrival) {
  timers_.Set(At(2), 50);
  timers_.Set(At(1), 50);
  timers_.Set(At(0), 70);
  EXPECT_EQ(timers_.Next(), 50);
  EXPECT_EQ(timers_.TakeDue(49), nullptr);
  EXPECT_EQ(timers_.TakeDue(60), At(1));
  EXPECT_EQ(timers_.TakeDue(60), At(2));
  EXPECT_EQ(timers_.TakeDue(60), nullptr);
  EXPECT_EQ(timers_.size(), 1u);
}

TEST_F(RankTimersTest, ARequestHasOneTime) {
  timers_.Set(At(0), 50);
  timers_.Set(At(0), 20);
  EXPECT_EQ(timers_.size(), 1u);
  EXPECT_EQ(timers_.Next(), 20);
  timers_.Clear(At(0));
  timers_.Clear(At(0));
  EXPECT_EQ(timers_.Next(), std::nullopt);
  EXPECT_EQ(requests_[0].rank_until_us, RankTimers::kNever);
}

}  // namespace
}  // namespace skein
