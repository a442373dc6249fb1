// Prefixes that go on in the host tier: what a request finds, and the copies of its step.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sched/scheduler.h"
#include "testing/fake_executor.h"

namespace skein {
namespace {

constexpr int32_t kPromptTokens = 96;  // three blocks, of which two can be cached

// Five blocks on the device and `num_host_blocks` on the host.
class HostTierLoad {
 public:
  explicit HostTierLoad(int32_t num_host_blocks)
      : scheduler_(ConfigOf(num_host_blocks)),
        executor_({.num_kv_blocks = 5, .num_host_kv_blocks = num_host_blocks, .vocab_size = 100}) {}

  // Runs a prompt of this content to its end. Returns the tokens that it found cached.
  int32_t Run(TokenId content) {
    scheduler_.Arrive(next_id_, PromptOf(content), ++now_us_);
    while (BeginStep()) EndStep();
    return cached_tokens_;
  }
  static Request PromptOf(TokenId content) {
    Request request;
    request.prompt.assign(kPromptTokens, content);
    request.generate().max_tokens = 1;
    return request;
  }

  bool BeginStep() {
    const StepPlan* plan = scheduler_.Plan(++now_us_);
    scheduler_.CheckIntegrity();
    if (plan == nullptr) return false;
    const std::span<const HostCopy> copies = HostCopiesOf(*plan);
    copies_.insert(copies_.end(), copies.begin(), copies.end());
    task_ = executor_.Begin(*plan);
    return true;
  }
  void EndStep() {
    const std::atomic<bool> never{false};
    EXPECT_EQ(executor_.Resume(*task_, never), TaskStatus::kDone);
    StepResults results = executor_.Results(*task_);
    scheduler_.Complete(&results, ++now_us_);
    for (const SampleOutput& output : scheduler_.TakeOutputs()) {
      cached_tokens_ = output.cached_tokens;
      if (output.finish) ++next_id_;
    }
  }
  void Arrive(TokenId content) { scheduler_.Arrive(next_id_, PromptOf(content), ++now_us_); }
  void FailStep() {
    scheduler_.FailStep({StatusCode::kUnavailable, "no memory"}, ++now_us_);
    scheduler_.CheckIntegrity();
    next_id_ += static_cast<RequestId>(scheduler_.TakeOutputs().size());
  }

  std::vector<HostCopy> TakeCopies() { return std::exchange(copies_, {}); }
  EngineStats Stats() const { return scheduler_.Stats(); }

 private:
  static SchedulerConfig ConfigOf(int32_t num_host_blocks) {
    EngineConfig config;
    config.vocab_size = 100;
    config.scheduler.policies = FindPreset("chunked-fcfs")->policies;
    config.scheduler.num_kv_blocks = 5;
    config.scheduler.num_host_kv_blocks = num_host_blocks;
    config.scheduler.max_model_len = 128;
    config.scheduler.max_num_seqs = 2;
    config.scheduler.max_num_batched_tokens = 48;
    return MakeSchedulerConfig(config).value();
  }

  Scheduler scheduler_;
  FakeExecutor executor_;
  std::unique_ptr<Task> task_;
  std::vector<HostCopy> copies_;
  TimeUs now_us_ = 0;
  RequestId next_id_ = 0;
  int32_t cached_tokens_ = -1;
};

TEST(SchedulerHostTier, AnEvictedPrefixCountsAsCached) {
  HostTierLoad load(12), without(0);
  for (const TokenId content : {1, 2, 3}) {
    EXPECT_EQ(load.Run(content), 0);
    EXPECT_EQ(without.Run(content), 0);
  }
  EXPECT_GT(std::ranges::count_if(load.TakeCopies(), &HostCopy::to_host), 3);
  EXPECT_EQ(without.Run(1), 0);
  EXPECT_TRUE(without.TakeCopies().empty());
  EXPECT_EQ(load.Run(1), 64);
  const std::vector<HostCopy> copies = load.TakeCopies();
  EXPECT_EQ(std::ranges::count(copies, false, &HostCopy::to_host), 2);
  EXPECT_EQ(load.Stats().host_kv_blocks_loaded, 2);
  EXPECT_EQ(load.Stats().prefix_cache_hits, 64);
  for (const TokenId content : {2, 3, 1}) EXPECT_EQ(load.Run(content), 64);
}

// Begin has made the copies, so what was saved is there, and so is what was loaded.
TEST(SchedulerHostTier, AFailedStepLosesNoBlock) {
  HostTierLoad load(12);
  for (const TokenId content : {1, 2, 3}) load.Run(content);
  load.TakeCopies();
  load.Arrive(1);
  ASSERT_TRUE(load.BeginStep());
  EXPECT_FALSE(load.TakeCopies().empty());
  load.FailStep();
  for (const TokenId content : {1, 2, 3, 1}) EXPECT_EQ(load.Run(content), 64);
}

TEST(SchedulerHostTier, AHostWithoutRoomKeepsTheBeginning) {
  HostTierLoad load(2);
  for (const TokenId content : {1, 2}) load.Run(content);
  EXPECT_EQ(load.Run(1), 64);  // one block is on the device still, or on the host
  EXPECT_LE(load.Stats().host_kv_blocks_used, 2);
}

}  // namespace
}  // namespace skein
