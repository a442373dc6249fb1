#include "sched/decode_set/prefix_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "kv/block_pool.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class PrefixGroupsTest : public ::testing::Test {
 protected:
  void Make(StopRule rule, TimeUs max_wait_us = 1'000'000) {
    PrefixGroupOptions options;
    options.stop.rule = rule;
    options.stop.max_loss = 1;
    options.max_wait_us = max_wait_us;
    options.max_wait_stretch = 0;
    groups_ = std::make_unique<PrefixGroups>(options);
  }

  // Enters a prompt of `num_shared` blocks of its group's tokens and `num_own` blocks of its own.
  RequestRecord* Enter(int group, TimeUs now_us = 0, int32_t priority = 0, int num_shared = 100,
                       int num_own = 1) {
    auto request = std::make_unique<RequestRecord>();
    request->arrival = requests_.size();
    request->id = requests_.size();
    request->urgency.priority = priority;
    auto sequence = std::make_unique<Sequence>(request.get(), 0, PrefixScope{});
    sequence->tokens.assign(size_t{kBlockTokens} * num_shared, group);
    sequence->tokens.resize(sequence->tokens.size() + size_t{kBlockTokens} * num_own,
                            1000 + static_cast<TokenId>(requests_.size()));
    request->prompt_len = static_cast<int32_t>(sequence->tokens.size());
    request->num_missing = request->prompt_len;
    sequence->blocks.Hash(sequence->tokens);
    request->sequences.push_back(std::move(sequence));
    requests_.push_back(std::move(request));
    groups_->Enter(requests_.back()->sequences.front().get(), now_us);
    return requests_.back().get();
  }

  // Runs one round with `room` free slots; returns the ids of the requests that join.
  std::vector<RequestId> Round(int room, TimeUs now_us = 0) {
    std::vector<RequestId> joined;
    for (; room > 0; --room) {
      Sequence* next = groups_->Candidate(now_us);
      if (next == nullptr || !groups_->Approves(now_us)) break;
      EXPECT_EQ(groups_->Candidate(now_us), next);  // a second call changes nothing
      EXPECT_TRUE(groups_->Approves(now_us));
      groups_->Join(next->request, now_us);
      joined.push_back(next->request->id);
    }
    groups_->EndRound();
    groups_->CheckIntegrity();
    return joined;
  }

  std::unique_ptr<PrefixGroups> groups_;
  std::vector<std::unique_ptr<RequestRecord>> requests_;
};

TEST_F(PrefixGroupsTest, ForBatchesOfOneGroup) {
  Make(StopRule::kNever);
  for (int i = 0; i < 9; ++i) Enter(i % 3);
  EXPECT_THAT(Round(5), ElementsAre(0, 3, 6, 1, 4));  // ties go by arrival
  EXPECT_EQ(groups_->shared_tokens(), 0);
  for (const int id : {0, 3, 6}) groups_->Leave(requests_[id].get());
  EXPECT_EQ(groups_->shared_tokens(), 100 * kBlockTokens);
  EXPECT_THAT(Round(5), ElementsAre(7, 2, 5, 8));
  EXPECT_EQ(groups_->counters(), (PrefixGroups::Counters{.joined = 9}));
}

TEST_F(PrefixGroupsTest, TheStopRuleClosesTheSetForARound) {
  Make(StopRule::kHeuristic);
  for (int i = 0; i < 8; ++i) Enter(0);
  for (int i = 0; i < 4; ++i) Enter(1);
  EXPECT_THAT(Round(20), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(Round(20), ElementsAre());
  EXPECT_EQ(groups_->counters().stops, 2u);
  Enter(0);  // passes requests without a shared prefix
  EXPECT_THAT(Round(20), ElementsAre(12));
  for (const int id : {0, 1, 2, 3, 4, 5, 6, 7, 12}) groups_->Leave(requests_[id].get());
  EXPECT_THAT(Round(20), ElementsAre(8, 9, 10, 11));  // an empty batch takes any request
}

TEST_F(PrefixGroupsTest, NobodyWaitsBeyondTheBound) {
  Make(StopRule::kHeuristic, 1000);
  for (int i = 0; i < 8; ++i) Enter(0, 0);
  const RequestRecord* lonely = Enter(1, 10);
  const RequestRecord* other = Enter(2, 20);
  EXPECT_EQ(Round(20, 100).size(), 8u);
  for (TimeUs now_us = 200; now_us < 1010; now_us += 10) {
    Enter(0, now_us);  // further candidates arrive
    EXPECT_EQ(Round(1, now_us).size(), 1u);
    EXPECT_NE(lonely->decode_set_member, -1);
  }
  Enter(0, 1010);
  EXPECT_THAT(Round(1, 1010), ElementsAre(lonely->id));
  EXPECT_THAT(Round(1, 1020), ElementsAre(other->id));
  EXPECT_EQ(groups_->counters().overdue, 2u);
}

TEST_F(PrefixGroupsTest, AnOverdueRequestThatDoesNotFitIsPassedByNobody) {
  Make(StopRule::kNever, 1000);
  Enter(0, 0);
  Enter(0, 0);
  Enter(0, 500);
  EXPECT_EQ(Round(1, 0).size(), 1u);
  EXPECT_EQ(groups_->Candidate(999)->request->id, 1u);
  EXPECT_TRUE(groups_->PassOver(999));
  EXPECT_EQ(groups_->Candidate(999)->request->id, 2u);
  groups_->EndRound();
  EXPECT_EQ(groups_->Candidate(1000)->request->id, 1u);
  EXPECT_FALSE(groups_->PassOver(1000));
  EXPECT_EQ(groups_->Candidate(1000), nullptr);
  groups_->EndRound();
  EXPECT_EQ(groups_->Candidate(1000)->request->id, 1u);
}

TEST_F(PrefixGroupsTest, ARoundLooksPastABoundedNumber) {
  Make(StopRule::kNever);
  for (int i = 0; i < 100; ++i) Enter(0);
  int num_passed = 0;
  while (groups_->Candidate(0) != nullptr) num_passed += groups_->PassOver(0);
  EXPECT_EQ(num_passed, 64);
  EXPECT_EQ(groups_->num_waiting(), 100);
  groups_->CheckIntegrity();
  EXPECT_THAT(Round(0), ElementsAre());
  EXPECT_THAT(Round(2), ElementsAre(0, 1));
}

// A request that is set aside without being the candidate is not chosen in this round. No other
// request is passed over for it.
TEST_F(PrefixGroupsTest, WhoIsSetAsideIsNotChosen) {
  Make(StopRule::kNever, 1000);
  for (int i = 0; i < 3; ++i) Enter(0);
  groups_->SetAside(*requests_[1], 0);
  groups_->SetAside(*requests_[1], 0);  // a second call changes nothing
  groups_->CheckIntegrity();
  EXPECT_EQ(groups_->num_waiting(), 3);
  EXPECT_THAT(Round(5), ElementsAre(0, 2));
  EXPECT_THAT(Round(5), ElementsAre(1));
  Enter(0);
  Enter(0);
  Enter(0, 500);
  groups_->SetAside(*requests_[5], 1000);
  EXPECT_EQ(groups_->Candidate(1000)->request->id, 3u);
  groups_->SetAside(*requests_[4], 1000);  // overdue: no request passes this one
  EXPECT_EQ(groups_->Candidate(1000), nullptr);
  EXPECT_THAT(Round(5, 1000), ElementsAre());
  EXPECT_THAT(Round(5, 1000), ElementsAre(3, 4, 5));
}

TEST_F(PrefixGroupsTest, WhoFindsNoRoomIsPassedByNobodyLessUrgent) {
  Make(StopRule::kNever);
  for (const int32_t priority : {1, 0, 0, 1}) Enter(0, 0, priority);
  EXPECT_EQ(groups_->Candidate(0)->request->id, 1u);
  EXPECT_TRUE(groups_->PassOver(0));
  EXPECT_THAT(Round(5), ElementsAre(2));  // only this one has the same priority
  EXPECT_THAT(Round(1), ElementsAre(1));  // the next round begins anew
  Enter(1, 0, 0);
  groups_->SetAside(*requests_[4], 0);  // request 4 waits for a row
  EXPECT_THAT(Round(5), ElementsAre(0, 3));
  EXPECT_THAT(Round(5), ElementsAre(4));
}

TEST_F(PrefixGroupsTest, PriorityGoesFirst) {
  Make(StopRule::kNever, 1000);
  Enter(0, 0, 1);
  const RequestRecord* late = Enter(0, 0, 1);
  EXPECT_EQ(Round(1).size(), 1u);
  const RequestRecord* urgent = Enter(1, 5000, 0);
  // `late` is overdue only among requests of its own priority.
  EXPECT_THAT(Round(1, 5000), ElementsAre(urgent->id));
  EXPECT_THAT(Round(1, 5000), ElementsAre(late->id));
}

// Each priority has its own waiting line, however long requests of other priorities wait.
TEST_F(PrefixGroupsTest, WhoIsOverdueIsSoAmongItsOwn) {
  Make(StopRule::kNever, 1000);
  for (int i = 0; i < 30; ++i) Enter(0, i, 3 - i % 3);  // with priorities 3, 2 and 1 in turn
  Enter(1, 40, 0);
  Enter(0, 41, 0);
  Enter(0, 42, 0);
  groups_->Join(requests_[29].get(), 50);      // request 29 is of group 0
  EXPECT_THAT(Round(1, 60), ElementsAre(31));  // only other requests could be overdue
  EXPECT_THAT(Round(1, 1040), ElementsAre(30));
  EXPECT_THAT(Round(3, 1042), ElementsAre(32, 2, 5));
  groups_->Leave(requests_[8].get());
  EXPECT_THAT(Round(30, 1042), SizeIs(26));
}

TEST_F(PrefixGroupsTest, AnotherRankCountsFromThenOn) {
  Make(StopRule::kNever);
  for (int i = 0; i < 4; ++i) Enter(0);
  const auto rerank = [this](int id, int64_t rank) {
    requests_[id]->urgency.rank = rank;
    groups_->Rerank(*requests_[id]);
    groups_->CheckIntegrity();
  };
  rerank(2, -1);
  EXPECT_EQ(groups_->Candidate(0)->request->id, 2u);
  groups_->PassOver(0);
  rerank(2, 1);  // passed over: not chosen in this round, and last in the next
  rerank(3, -1);
  EXPECT_THAT(Round(1), ElementsAre(3));
  rerank(3, 0);  // request 3 is in the batch
  groups_->Leave(requests_[3].get());
  rerank(3, -1);  // request 3 is gone
  EXPECT_THAT(Round(5), ElementsAre(0, 1, 2));
}

TEST_F(PrefixGroupsTest, StepsWithMuchPrefillTeachNothing) {
  Make(StopRule::kBandit);
  for (int i = 0; i < 4; ++i) Enter(0);
  Round(4);
  groups_->ObserveStep(4, 5, 1000);
  groups_->ObserveStep(0, 0, 1000);
  groups_->ObserveStep(4, 0, 0);
  EXPECT_EQ(groups_->learned()->num_batches, 0);
  groups_->ObserveStep(4, 4, 1000);
  EXPECT_EQ(groups_->learned()->num_batches, 1);
  EXPECT_EQ(groups_->learned()->num_decisions, 3);  // no question was asked about the first
  EXPECT_EQ(groups_->learned()->best_reward, 8000);
}

TEST_F(PrefixGroupsTest, AYesTeachesNothingWhereNobodyJoins) {
  Make(StopRule::kBandit);
  for (int i = 0; i < 4; ++i) Enter(0);
  Round(1);
  for (int round = 0; round < 5; ++round) {
    ASSERT_EQ(groups_->Candidate(0)->request->id, 1u);
    EXPECT_TRUE(groups_->Approves(0));
    groups_->EndRound();
  }
  groups_->ObserveStep(1, 0, 1000);
  EXPECT_EQ(groups_->learned()->num_decisions, 0);
  EXPECT_TRUE(groups_->Approves(0));
  EXPECT_TRUE(groups_->PassOver(0));
  EXPECT_THAT(Round(1), ElementsAre(2));
  EXPECT_TRUE(groups_->Approves(0));
  groups_->Join(requests_[3].get(), 0);  // another request, without a question
  groups_->EndRound();
  groups_->ObserveStep(3, 0, 1000);
  EXPECT_EQ(groups_->learned()->num_decisions, 1);
}

TEST_F(PrefixGroupsTest, RandomEvents) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    requests_.clear();
    Random random(seed);
    Make(static_cast<StopRule>(seed % 4), 50);
    size_t num_left = 0;
    for (TimeUs now_us = 0; now_us < 300; ++now_us) {
      if (random.OneIn(2)) {
        Enter(static_cast<int>(random.Between(0, 3)), now_us,
              static_cast<int32_t>(random.Between(0, 1)), static_cast<int>(random.Between(0, 5)),
              static_cast<int>(random.Between(1, 3)));
      }
      if (random.OneIn(3) && !requests_.empty()) {
        RequestRecord* request = requests_[random.Between(0, std::ssize(requests_) - 1)].get();
        num_left += request->decode_set_member != -1;
        groups_->Leave(request);
      }
      while (groups_->Candidate(now_us) != nullptr && random.OneIn(3)) groups_->PassOver(now_us);
      if (random.OneIn(3) && !requests_.empty()) {
        RequestRecord* request = requests_[random.Between(0, std::ssize(requests_) - 1)].get();
        request->urgency.rank = random.Between(-2, 2);
        groups_->Rerank(*request);
      }
      Round(static_cast<int>(random.Between(0, 3)), now_us);
      groups_->ObserveStep(groups_->num_active(), random.Between(0, 5), 100);
      EXPECT_EQ(groups_->num_waiting() + groups_->num_active() + num_left, requests_.size());
    }
    for (const auto& request : requests_) groups_->Leave(request.get());
    groups_->CheckIntegrity();
    EXPECT_EQ(groups_->num_waiting() + groups_->num_active(), 0);
  }
}

}  // namespace
}  // namespace skein
