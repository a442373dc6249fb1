#include "sched/decode_set/group_turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace skein {
namespace {

using Handle = ChunkedHashTree::Handle;

constexpr int32_t kChunk = 32;
constexpr int32_t kShared = 160;  // chunks that a group shares
constexpr int32_t kOutputs = 100;

// Two GPUs: the cache of the first holds four prefixes of kShared chunks, the second reads shared
// tokens once.
constexpr DecodeFit kCached = {
    .step_us = 17'000, .token_us = 0.16, .arithmetic_share = 0.08, .cache_tokens = 24'000};
constexpr DecodeFit kOnce = {.step_us = 17'000,
                             .row_us = 20,
                             .token_us = 0.16,
                             .arithmetic_share = 0.001,
                             .cache_tokens = 1e9};

class GroupTurnsTest : public ::testing::Test {
 protected:
  void Make(const DecodeFit& fit, int32_t max_rows = 500, int64_t max_kv_tokens = 10'000'000) {
    turns_.emplace(StopOptions{}, fit, DecodeLimits{max_rows, max_kv_tokens}, &tree_, kChunk,
                   [this](Handle handle) {
                     return GroupTurns::Waiting{.cached_tokens = cached_[group_of_.at(handle)],
                                                .since_us = arrived_us_.at(handle)};
                   });
  }

  void Arrive(int group, TimeUs now_us, int32_t outputs = kOutputs) {
    std::vector<uint64_t> hashes;
    for (int i = 0; i < kShared; ++i) hashes.push_back(1000 * (group + 1) + i);
    hashes.push_back(1'000'000 + vectors_.size());
    vectors_.push_back(std::move(hashes));
    const Handle handle = tree_.Insert(ViewOf(vectors_.back()), {.arrival = vectors_.size()});
    group_of_[handle] = group;
    arrived_us_[handle] = now_us;
    turns_->NoteArrival(kShared * kChunk + 20, outputs, now_us);
  }
  void Join(Handle handle) {
    tree_.Add(handle);
    batch_.prompt_tokens += kShared * kChunk + 20;
  }
  // Whether turns begin for requests of eight groups, of which the first are in the batch, with so
  // many outputs each.
  bool BeginsBeside(int num_active, int progress, int num_requests, TimeUs between_us,
                    int32_t max_rows = 500) {
    constexpr int kGroups = 8, kFewOutputs = 50;
    Make(kCached, max_rows);
    batch_ = {};
    for (int i = 0; i < num_requests; ++i) Arrive(i % kGroups, i * between_us, kFewOutputs);
    std::vector<Handle> waiting;
    for (const auto& [handle, group] : group_of_) waiting.push_back(handle);
    const std::vector<Handle> joined(waiting.begin(), waiting.begin() + num_active);
    waiting.erase(waiting.begin(), waiting.begin() + num_active);
    for (const Handle handle : joined) Join(handle);
    batch_.output_tokens = int64_t{progress} * num_active;
    const bool begins = turns_->Decide(batch_, true, false, num_requests * between_us);
    for (const Handle handle : joined) tree_.Finish(handle);
    for (const Handle handle : waiting) tree_.Remove(handle);
    group_of_.clear();
    return begins;
  }
  std::set<int> OpenedGroups() const {
    std::set<int> groups;
    for (const Handle handle : turns_->Opened()) groups.insert(group_of_.at(handle));
    return groups;
  }

  std::list<std::vector<uint64_t>> vectors_;
  std::map<Handle, int> group_of_;
  std::map<Handle, TimeUs> arrived_us_;
  std::map<int, int32_t> cached_;  // tokens of a group's prefix in the cache
  ChunkedHashTree tree_{ChunkedHashTree::Choice::kLeastPrefixLoss};
  std::optional<GroupTurns> turns_;
  GroupTurns::Batch batch_;
};

TEST_F(GroupTurnsTest, BeginWhereTheCacheRewardsPurity) {
  Make(kCached);
  for (int i = 0; i < 800; ++i) Arrive(i % 8, i * 1000);
  EXPECT_TRUE(turns_->Decide(batch_, true, false, 800'000));
  EXPECT_TRUE(turns_->restricts());
  EXPECT_LE(OpenedGroups().size(), 3u);
  EXPECT_TRUE(OpenedGroups().contains(0));  // the request that has waited longest
}

TEST_F(GroupTurnsTest, DoNotBeginWhereNothingIsToBeGained) {
  for (const DecodeFit& fit : {kOnce, DecodeFit{}}) {
    Make(fit);
    for (int i = 0; i < 800; ++i) Arrive(i % 8, i * 1000);
    EXPECT_FALSE(turns_->Decide(batch_, true, false, 800'000));
    EXPECT_FALSE(turns_->restricts());
  }
}

// The memory holds ten of forty prefixes. Beside the group that has waited longest, those that
// compute the least for each request have a turn.
TEST_F(GroupTurnsTest, GroupsWithCachedPrefixesGoFirstIfPrefixesAreEvicted) {
  constexpr int32_t kWhole = kShared * kChunk;
  const std::pair<std::map<int, int32_t>, std::set<int>> cases[] = {
      {{}, {0, 1, 2}},
      {{{30, kWhole}, {31, kWhole}}, {0, 30, 31}},
      {{{30, kWhole}, {32, kWhole / 2}}, {0, 30, 32}}};
  for (const auto& [cached, opened] : cases) {
    cached_ = cached;
    Make(kOnce, 200, /*max_kv_tokens=*/10 * (kWhole + 2000));
    for (int i = 0; i < 800; ++i) Arrive(i % 40, i * 1000);
    ASSERT_TRUE(turns_->Decide(batch_, true, false, 800'000));
    EXPECT_EQ(OpenedGroups(), opened);
    for (const auto& [handle, group] : group_of_) tree_.Remove(handle);
    group_of_.clear();
  }
}

TEST_F(GroupTurnsTest, BeginOnceAProfileTellsTheCosts) {
  Make(DecodeFit{});
  for (int i = 0; i < 800; ++i) Arrive(i % 8, i * 1000);
  EXPECT_FALSE(turns_->Decide(batch_, true, false, 800'000));
  turns_->AdoptFit(kCached);
  EXPECT_TRUE(turns_->Decide(batch_, true, false, 800'000));
  EXPECT_TRUE(turns_->restricts());
}

// No request waits if all find a slot and few arrive, so a turn would only make requests wait.
TEST_F(GroupTurnsTest, DoNotBeginAtALowRate) {
  Make(kCached);
  for (int i = 0; i < 40; ++i) Arrive(i % 8, i * 1'000'000);
  EXPECT_FALSE(turns_->Decide(batch_, true, false, 40'000'000));
}

// The batch is left faster than it fills up, so those to come find slots: none would wait with all.
TEST_F(GroupTurnsTest, DoNotBeginWhereThoseToComeFindSlots) {
  Make(kCached);
  for (int i = 0; i < 400; ++i) Arrive(i % 20, i * 10'000, /*outputs=*/20);
  EXPECT_FALSE(turns_->Decide(batch_, true, false, 4'000'000));
}

// A batch of all groups has to shrink before turns gain. If no further request arrives, that takes
// longer than turns save.
TEST_F(GroupTurnsTest, DoNotBeginIfALargeBatchHasToShrink) {
  constexpr TimeUs kBetweenUs = 10'000;
  EXPECT_TRUE(BeginsBeside(/*num_active=*/0, /*progress=*/0, /*num_requests=*/300, kBetweenUs));
  EXPECT_FALSE(BeginsBeside(/*num_active=*/270, /*progress=*/0, /*num_requests=*/300, kBetweenUs));
}

// The rows of a young batch end late, so requests without a slot would wait for long with all.
TEST_F(GroupTurnsTest, BeginEarlierBesideAYoungBatch) {
  constexpr TimeUs kBetweenUs = 20'000;
  constexpr int32_t kMaxRows = 200;
  EXPECT_TRUE(
      BeginsBeside(/*num_active=*/100, /*progress=*/0, /*num_requests=*/260, kBetweenUs, kMaxRows));
  EXPECT_FALSE(BeginsBeside(/*num_active=*/100, /*progress=*/25, /*num_requests=*/260, kBetweenUs,
                            kMaxRows));
}

// All requests, and all that are predicted to arrive, find a slot: part of a request does not wait.
TEST_F(GroupTurnsTest, DoNotBeginBesideAYoungBatchWithFreeSlots) {
  EXPECT_FALSE(BeginsBeside(/*num_active=*/50, /*progress=*/0, /*num_requests=*/200,
                            /*between_us=*/20'000));
}

TEST_F(GroupTurnsTest, TheNextTurnBeginsWhenTheBatchHasShrunk) {
  Make(kCached);
  for (int i = 0; i < 800; ++i) Arrive(i % 8, i * 1000);
  ASSERT_TRUE(turns_->Decide(batch_, true, false, 800'000));
  const std::set<int> first = OpenedGroups();
  const uint32_t turn = turns_->turn();
  std::vector<Handle> joined;
  for (const Handle handle : turns_->Opened()) joined.push_back(handle);
  for (const Handle handle : joined) Join(handle);
  while (joined.size() > 2) {
    tree_.Finish(joined.back());
    batch_.prompt_tokens -= kShared * kChunk + 20;
    joined.pop_back();
  }
  EXPECT_TRUE(turns_->Decide(batch_, false, false, 30'000'000));
  EXPECT_EQ(turns_->turn(), turn + 1);
  for (const int group : OpenedGroups()) EXPECT_FALSE(first.contains(group));
}

TEST_F(GroupTurnsTest, AnUrgentRequestBeginsATurnAtOnce) {
  Make(kCached);
  for (int i = 0; i < 800; ++i) Arrive(i % 8, i * 1000);
  ASSERT_TRUE(turns_->Decide(batch_, true, false, 800'000));
  for (const Handle handle :
       std::vector<Handle>(turns_->Opened().begin(), turns_->Opened().end())) {
    Join(handle);
  }
  EXPECT_TRUE(turns_->Decide(batch_, false, true, 900'000));
}

// Prefixes of the turn's groups may be evicted before a request of the turn joins.
TEST_F(GroupTurnsTest, ATurnIsChosenAgainUntilARequestJoins) {
  constexpr int32_t kWhole = kShared * kChunk;
  cached_ = {{30, kWhole}, {31, kWhole}};
  Make(kOnce, 200, /*max_kv_tokens=*/10 * (kWhole + 2000));
  for (int i = 0; i < 800; ++i) Arrive(i % 40, i * 1000);
  ASSERT_TRUE(turns_->Decide(batch_, true, false, 800'000));
  EXPECT_TRUE(OpenedGroups().contains(30));
  cached_ = {{32, kWhole}, {33, kWhole}};
  ASSERT_TRUE(turns_->Decide(batch_, true, false, 900'000));
  EXPECT_TRUE(OpenedGroups().contains(32));
  EXPECT_FALSE(OpenedGroups().contains(30));
  Join(turns_->Opened().front());
  EXPECT_FALSE(turns_->Decide(batch_, true, false, 1'000'000));
}

// Requests wait for those to come. These do not come, and all that wait find a slot.
TEST_F(GroupTurnsTest, EndIfNoFurtherRequestsCome) {
  for (const int num_requests : {300, 1500}) {
    Make(kCached);
    for (int i = 0; i < num_requests; ++i) Arrive(i % 8, i * 10'000);
    const TimeUs begin_us = num_requests * 10'000;
    ASSERT_TRUE(turns_->Decide(batch_, true, false, begin_us));
    const std::vector<Handle> joined(turns_->Opened().begin(), turns_->Opened().end());
    const size_t num_rows = std::min<size_t>(joined.size(), 100);
    for (size_t i = 0; i < num_rows; ++i) Join(joined[i]);
    batch_.output_tokens = static_cast<int64_t>(num_rows) * kOutputs / 2;
    turns_->Decide(batch_, true, false, begin_us + 3'000'000);
    EXPECT_EQ(turns_->restricts(), num_requests > 500);
    for (size_t i = 0; i < num_rows; ++i) tree_.Finish(joined[i]);
    for (const auto& [handle, group] : group_of_) {
      if (std::find(joined.begin(), joined.begin() + num_rows, handle) ==
          joined.begin() + num_rows) {
        tree_.Remove(handle);
      }
    }
    group_of_.clear();
    batch_ = {};
  }
}

// In turns only, the device becomes slower than predicted: measured steps end the turns.
TEST_F(GroupTurnsTest, EndWhenMeasuredStepsShowNoGain) {
  Make(kCached);
  for (int i = 0; i < 800; ++i) Arrive(i % 8, i * 1000);
  for (int i = 0; i < 16; ++i) turns_->ObserveStep(1, batch_, 17'000);  // no turns: as predicted
  ASSERT_TRUE(turns_->Decide(batch_, true, false, 800'000));
  for (const Handle handle :
       std::vector<Handle>(turns_->Opened().begin(), turns_->Opened().end())) {
    Join(handle);
  }
  int num_steps = 0;
  while (turns_->restricts() && num_steps < 1000) {
    turns_->ObserveStep(tree_.num_active(), batch_, 400'000);
    turns_->Decide(batch_, false, false, 900'000);
    ++num_steps;
  }
  EXPECT_LE(num_steps, 20);  // 2 % of 1,000 batches
}

// In turns, steps show no misses where the fit predicts them. So a batch of all groups is fast.
TEST_F(GroupTurnsTest, EndWhenStepsShowNoMisses) {
  Make(kCached);
  for (int i = 0; i < 800; ++i) Arrive(i % 8, i * 1000);
  ASSERT_TRUE(turns_->Decide(batch_, true, false, 800'000));
  DecodeFit device = kCached;
  device.cache_tokens = 1e9;
  std::vector<Handle> requests;
  for (const auto& [handle, group] : group_of_) requests.push_back(handle);
  int num_decisions = 0;
  for (size_t i = 0; i < 400 && turns_->restricts(); i += 25) {
    for (size_t j = i; j < i + 25; ++j) Join(requests[j]);
    const double rows = tree_.num_active(), own = rows * 20;
    const DecodeWork work{rows, rows * kShared * kChunk + own, 8.0 * kShared * kChunk + own};
    for (int step = 0; step < 2; ++step) {
      turns_->ObserveStep(tree_.num_active(), batch_, PredictUs(device, work));
      if (!turns_->IsOutdated()) continue;
      turns_->Decide(batch_, true, false, 900'000);
      ++num_decisions;
    }
  }
  EXPECT_FALSE(turns_->restricts());
  EXPECT_GE(num_decisions, 1);
}

}  // namespace
}  // namespace skein
