// The profile that an engine takes while it has nothing to do.

#include "engine/idle_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "testing/engine_loop.h"
#include "testing/fake_executor.h"

namespace skein {
namespace {

using testing::Answers;
using testing::MakeRequest;

// Runs the steps of a profile, whose draws alone are greedy, and leaves its blocks without a
// history. All other steps go to a FakeExecutor, which aborts on blocks without one.
class ProfiledExecutor final : public Executor {
 public:
  explicit ProfiledExecutor(const FakeExecutor::Options& options) : fake_(options) {}

  std::unique_ptr<Task> Begin(const StepPlan& plan) override {
    const std::vector<PlanRow>* rows = RowsOfProfile(plan);
    if (rows == nullptr) return fake_.Begin(plan);
    auto task = std::make_unique<ProfileTask>();
    for (const PlanRow& row : *rows) {
      task->num_tokens += row.begin + static_cast<int32_t>(row.tokens.size());
      const std::vector<std::byte> nothing(fake_.port_bytes());
      for (const BlockId block : row.block_table) fake_.ImportBlock(block, nothing);
    }
    ++num_profiled;
    return task;
  }

  TaskStatus Resume(Task& task, const std::atomic<bool>& preempt) override {
    const auto* profile = dynamic_cast<ProfileTask*>(&task);
    if (profile == nullptr) return fake_.Resume(task, preempt);
    while (hangs) {
      if (preempt) {
        ++num_stopped;
        return TaskStatus::kPreempted;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200 + 10 * profile->num_tokens));
    return TaskStatus::kDone;
  }

  const StepResults& Results(const Task& task) const override { return fake_.Results(task); }

  std::atomic<bool> hangs{false};  // steps of a profile do not end by themselves
  std::atomic<int> num_profiled{0}, num_stopped{0};

 private:
  struct ProfileTask : Task {
    int64_t num_tokens = 0;
  };

  static const std::vector<PlanRow>* RowsOfProfile(const StepPlan& plan) {
    const auto* oneshot = std::get_if<OneShotPlan>(&plan);
    const auto* decode = std::get_if<DecodePlan>(&plan);
    if (oneshot == nullptr && decode == nullptr) return nullptr;
    const std::vector<PlanRow>& rows = oneshot != nullptr ? oneshot->rows : decode->rows;
    const auto& draws = rows.front().draws;
    const bool greedy = !draws.empty() && draws.front().generate->sampling.temperature == 0;
    return greedy ? &rows : nullptr;
  }

  FakeExecutor fake_;
};

class ProfileObserver final : public SchedulerObserver {
 public:
  void OnProfile(const CostFit& cost, const DecodeFit& decode_cost, TimeUs /*now_us*/) override {
    taken_.set_value({cost, decode_cost});
  }
  std::pair<CostFit, DecodeFit> Wait() {
    auto taken = taken_.get_future();
    if (taken.wait_for(std::chrono::seconds(60)) == std::future_status::ready) return taken.get();
    ADD_FAILURE() << "no profile";
    return {};
  }

 private:
  std::promise<std::pair<CostFit, DecodeFit>> taken_;
};

class IdleProfileTest : public ::testing::Test {
 protected:
  void Start(bool hangs = false, int32_t num_kv_blocks = 40) {
    config_.scheduler.policies = FindPreset("auto")->policies;
    config_.scheduler.prefix_groups.stop.rule = StopRule::kModel;
    config_.vocab_size = 100;
    config_.scheduler.max_model_len = 256;
    config_.scheduler.num_kv_blocks = num_kv_blocks;
    config_.scheduler.max_num_seqs = 8;
    config_.scheduler.max_num_batched_tokens = 64;
    options_ = {.num_kv_blocks = num_kv_blocks, .vocab_size = config_.vocab_size};
    executor_ = std::make_unique<ProfiledExecutor>(options_);
    executor_->hangs = hangs;
    const StepProfiler profiler(executor_.get(), &clock_, config_.vocab_size, num_kv_blocks,
                                GenerateSpec{});
    auto profile =
        std::make_unique<IdleProfile>(profiler, &clock_, MakeSchedulerConfig(config_).value());
    engine_ =
        MakeEngine(config_, executor_.get(), &clock_, {&observer_}, std::move(profile)).value();
  }

  // Serves a prompt of `prompt_len` tokens that begins with `first`.
  void Serve(int32_t prompt_len, TokenId first) {
    const Request request = MakeRequest(prompt_len, 5, first);
    RequestId id = 0;
    ASSERT_TRUE(engine_->Submit(request, answers_.Callback(), &id).ok());
    answers_.WaitFinished(++num_served_);
    EXPECT_EQ(answers_.Of(id).tokens, FakeExecutor::Expected(options_, request, 0, 5));
  }

  EngineConfig config_;
  FakeExecutor::Options options_;
  MonotonicClock clock_;
  ProfileObserver observer_;
  std::unique_ptr<ProfiledExecutor> executor_;
  Answers answers_;
  int num_served_ = 0;
  std::unique_ptr<EngineLoop> engine_;  // stops before the objects that it uses
};

TEST_F(IdleProfileTest, LeavesThePrefixCacheAsItIs) {
  Start();
  Serve(150, 1);
  const auto [cost, decode_cost] = observer_.Wait();
  EXPECT_NE(cost, CostFit{});
  EXPECT_NE(decode_cost, DecodeFit{});
  EXPECT_GT(executor_->num_profiled, 10);
  const EngineStats stats = engine_->Stats();
  EXPECT_EQ(stats.kv_blocks_used, 0);
  EXPECT_EQ(stats.kv_blocks_cached, 4);
  EXPECT_EQ(stats.requests_decode, 1u);  // steps of the profile count nowhere
  Serve(150, 1);
  EXPECT_GE(engine_->Stats().prefix_cache_hits, 128u);
}

TEST_F(IdleProfileTest, StopsForARequestAndGoesOnAfterIt) {
  Start(/*hangs=*/true);
  for (int i = 0; i < 60'000 && executor_->num_profiled == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Serve(100, 2);
  EXPECT_GE(executor_->num_stopped, 1);
  executor_->hangs = false;
  EXPECT_NE(observer_.Wait().second, DecodeFit{});
  Serve(100, 3);
}

TEST_F(IdleProfileTest, StopsForTheEnd) {
  Start(/*hangs=*/true);
  for (int i = 0; i < 60'000 && executor_->num_profiled == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  engine_->Shutdown();
  EXPECT_EQ(executor_->num_profiled, 1);
}

// Remembers what the last step overwrote.
class WatchedExecutor final : public Executor {
 public:
  int32_t num_states() const override { return 3; }
  std::unique_ptr<Task> Begin(const StepPlan& plan) override {
    const auto* oneshot = std::get_if<OneShotPlan>(&plan);
    const PlanRow& row =
        oneshot != nullptr ? oneshot->rows.front() : std::get<DecodePlan>(plan).rows.front();
    blocks.assign(row.block_table.begin(), row.block_table.end());
    state = row.state.to;
    return std::make_unique<Task>();
  }
  TaskStatus Resume(Task& /*task*/, const std::atomic<bool>& /*preempt*/) override {
    return TaskStatus::kDone;
  }
  const StepResults& Results(const Task& /*task*/) const override { return results_; }

  std::vector<BlockId> blocks;
  StateId state = kNoState;

 private:
  const StepResults results_;
};

// Blocks and states with a cached prefix are not overwritten, and the next to be given away stay
// the same.
TEST(StepProfiler, UsesFreeMemoryAlone) {
  BlockManager blocks(4, /*prefix_caching=*/true, /*num_states=*/3);
  const std::vector<int32_t> tokens(kBlockTokens, 7);
  PrefixHashes hashes;
  hashes.Extend(tokens);
  std::vector<BlockId> cached = {blocks.Allocate()};
  ASSERT_TRUE(blocks.Publish(hashes, tokens, 0, cached));
  const StateId snapshot = blocks.states().Take(), running = blocks.states().Take();
  blocks.states().Keep(cached[0], snapshot);
  blocks.states().Unref(snapshot);
  blocks.Release(cached);

  const MonotonicClock clock;
  WatchedExecutor executor;
  StepProfiler profiler(&executor, &clock, 100, 4, GenerateSpec{});
  profiler.UseFreeMemory(/*most_blocks=*/9, &blocks);
  EXPECT_EQ(profiler.num_kv_blocks(), 3);
  const ProfileRow row = {.new_tokens = 3 * kBlockTokens};
  const ProfileRow longer = {.new_tokens = 3 * kBlockTokens + 1}, shorter = {.new_tokens = 1};
  EXPECT_FALSE(profiler.Fits({&longer, 1}));
  profiler.MeasureUs({&row, 1});
  EXPECT_EQ(std::ranges::count(executor.blocks, cached[0]), 0);
  EXPECT_NE(executor.state, snapshot);
  EXPECT_NE(executor.state, running);
  EXPECT_EQ(blocks.num_cached(), 1);
  EXPECT_EQ(blocks.num_free(), 3);
  EXPECT_EQ(blocks.Allocate(), executor.blocks[0]);
  blocks.states().Take();
  profiler.UseFreeMemory(/*most_blocks=*/1, &blocks);
  EXPECT_EQ(profiler.num_kv_blocks(), 1);
  EXPECT_FALSE(profiler.Fits({&row, 1}));
  EXPECT_FALSE(profiler.Fits({&shorter, 1}));  // no state is free
  blocks.CheckIntegrity();
}

// Short prompts alone would say too little: the costs from the start are kept.
TEST_F(IdleProfileTest, KeepsTheCostsIfTheCacheHoldsTheMemory) {
  Start(/*hangs=*/false, /*num_kv_blocks=*/10);
  Serve(250, 1);
  Serve(250, 2);
  EXPECT_EQ(observer_.Wait().first, CostFit{});
  Serve(250, 2);
}

}  // namespace
}  // namespace skein
