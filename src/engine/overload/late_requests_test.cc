#include "engine/overload/late_requests.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <set>
#include <vector>

#include "base/clock.h"
#include "testing/fake_executor.h"

namespace skein {
namespace {

constexpr TimeUs kSecondUs = 1'000'000;

// One decode slot. The bound is 4 s, so clients give up after 8 s.
class LateRequestsTest : public ::testing::Test {
 protected:
  void Start(bool refuses_late = false) {
    config_.vocab_size = 100;
    config_.max_wait_us = 4 * kSecondUs;
    config_.refuses_late = refuses_late;
    config_.scheduler.max_model_len = 256;
    config_.scheduler.num_kv_blocks = 40;
    config_.scheduler.max_num_seqs = 1;
    config_.scheduler.max_num_batched_tokens = 64;
    scheduler_ = MakeSchedulerConfig(config_).value();
    executor_.emplace(FakeExecutor::Options{.num_kv_blocks = 40, .vocab_size = 100});
    core_.emplace(scheduler_, &*executor_, &clock_, std::vector<SchedulerObserver*>{},
                  [](RequestId) {});
  }

  void Arrive(RequestId id, std::vector<Request> requests) {
    const WaitRules rules(config_, scheduler_);
    std::vector<WaitLimits> limits;
    for (const Request& request : requests) {
      limits.push_back(rules.LimitsOf(request, estimate_));
    }
    late_.Note(id, clock_.NowUs(), limits);
    const auto note = [this](const RequestOutput& output) {
      if (output.finish == FinishReason::kError) ended_.insert(output.request);
    };
    core_->Arrive(id, requests, note, clock_.NowUs());
  }

  void Step() {
    const std::atomic<bool> never{false};
    core_->Step(never, [] { return true; });
    core_->Dispatch();
  }

  // The requests that have ended so by this time.
  std::set<RequestId> EndedAt(TimeUs now_us) {
    for (; clock_.NowUs() < now_us; clock_.AdvanceTo(clock_.NowUs() + kSecondUs / 20)) {
      late_.End(estimate_, clock_.NowUs(), &*core_);
      core_->Dispatch();
    }
    return ended_;
  }

  static Request Continue(int32_t num_tokens, int32_t max_tokens = 10) {
    Request request;
    request.prompt.assign(num_tokens, 1);
    request.generate().max_tokens = max_tokens;
    return request;
  }

  EngineConfig config_;
  SchedulerConfig scheduler_;
  VirtualClock clock_;
  std::optional<FakeExecutor> executor_;
  std::optional<EngineCore> core_;
  WaitEstimate estimate_{1000, 1};
  LateRequests late_;
  std::set<RequestId> ended_;
};

using Ids = std::set<RequestId>;

// The first request takes the slot; the others could begin only for clients that give up before the
// end. A run of 10 tokens takes 2 s, or 3 s with the margin.
TEST_F(LateRequestsTest, EndsBeforeTheirRunWouldBeLost) {
  Start();
  estimate_.ObserveRun({.size = 10, .us = 2 * kSecondUs});
  Arrive(0, {Continue(10)});
  Step();
  Arrive(1, {Continue(10)});
  Arrive(2, {Continue(10, 1)});  // needs no slot, but does not run either; takes no time
  EXPECT_EQ(EndedAt(4'900'000), Ids{});
  EXPECT_EQ(EndedAt(5'400'000), Ids{1});
  EXPECT_EQ(EndedAt(7'900'000), Ids{1});
  EXPECT_EQ(EndedAt(8'500'000), (Ids{1, 2}));
  EXPECT_EQ(late_.size(), 0u);
}

// Runs become slower while a request waits.
TEST_F(LateRequestsTest, FollowsTheEstimate) {
  Start();
  Arrive(0, {Continue(10)});
  Step();
  Arrive(1, {Continue(10)});
  EXPECT_EQ(EndedAt(5'300'000), Ids{});
  for (int i = 0; i < 9; ++i) {
    estimate_.ObserveRun({.size = 10, .us = 2 * kSecondUs});
  }
  EXPECT_EQ(EndedAt(5'900'000), Ids{1});
}

// An answer of 50 tokens takes 10 s, longer than a client without a timeout would wait for another:
// its request may begin until 5 s, although runs become shorter.
TEST_F(LateRequestsTest, AClientOfALongRunWaitsForIt) {
  Start();
  estimate_.ObserveRun({.size = 10, .us = 2 * kSecondUs});
  Arrive(0, {Continue(10)});
  Step();
  Arrive(1, {Continue(10, 50)});
  for (int i = 0; i < 100; ++i) estimate_.ObserveRun({.size = 10, .us = kSecondUs});
  EXPECT_EQ(EndedAt(4'900'000), Ids{});
  EXPECT_EQ(EndedAt(5'400'000), Ids{1});
}

TEST_F(LateRequestsTest, AnArrivalEndsWholeOrNotAtAll) {
  Start();
  estimate_.ObserveRun({.size = 10, .us = 2 * kSecondUs});
  Arrive(0, {Continue(10), Continue(20)});
  Step();  // begins the first
  EXPECT_EQ(EndedAt(7'900'000), Ids{});
  EXPECT_EQ(EndedAt(8'500'000), Ids{1});  // its client has given up
}

TEST_F(LateRequestsTest, EndsMissedDeadlinesIfToldTo) {
  for (const bool refuses_late : {false, true}) {
    Start(refuses_late);
    const TimeUs begin_us = clock_.NowUs();
    Request request = Continue(20);
    request.slo_ttft_us = kSecondUs;
    Arrive(0, {Continue(10)});
    Step();
    Arrive(1, {request});
    EXPECT_EQ(EndedAt(begin_us + 2 * kSecondUs), refuses_late ? Ids{1} : Ids{});
    late_.Clear();
  }
}

}  // namespace
}  // namespace skein
