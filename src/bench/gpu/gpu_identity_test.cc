#include "bench/gpu/gpu_identity.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>

#include "cuda/device/fake_device.h"
#include "cuda/executor/cuda_runtime.h"

namespace skein {
namespace {

const IdentityOptions kShortPrompts = {
    .prompt_tokens = {1, 5, 33, 40}, .single_tokens = 5, .beside_tokens = 33, .decode_steps = 2};

// Passes every call to another executor, and changes the results of some plans.
class ChangedExecutor final : public Executor {
 public:
  using Change = std::function<void(const StepPlan&, StepResults*)>;
  ChangedExecutor(Executor* executor, Change change)
      : executor_(executor), change_(std::move(change)) {}

  std::unique_ptr<Task> Begin(const StepPlan& plan) override {
    plan_ = &plan;
    return executor_->Begin(plan);
  }
  TaskStatus Resume(Task& task, const std::atomic<bool>& preempt) override {
    return executor_->Resume(task, preempt);
  }
  const StepResults& Results(const Task& task) const override {
    results_ = executor_->Results(task);
    change_(*plan_, &results_);
    return results_;
  }

 private:
  Executor* const executor_;
  const Change change_;
  const StepPlan* plan_ = nullptr;
  mutable StepResults results_;
};

class ChangedRuntime final : public Runtime {
 public:
  explicit ChangedRuntime(ChangedExecutor::Change change)
      : runtime_(
            cuda::LoadCudaRuntime({.model_dir = SKEIN_SOURCE_DIR "/tests/data/models/qwen3-bf16",
                                   .threads = 1,
                                   .max_model_len = 64,
                                   .max_num_batched_tokens = IdentityTokens(kShortPrompts),
                                   .num_kv_blocks = IdentityBlocks(kShortPrompts)},
                                  std::make_unique<cuda::FakeDevice>())
                .value()),
        executor_(&runtime_->executor(), std::move(change)) {}

  Executor& executor() override { return executor_; }
  KvPort& kv_port() override { return runtime_->kv_port(); }
  void set_granularity(Granularity granularity) override { runtime_->set_granularity(granularity); }
  const ModelConfig& config() const override { return runtime_->config(); }
  int32_t num_kv_blocks() const override { return runtime_->num_kv_blocks(); }
  int32_t num_states() const override { return runtime_->num_states(); }
  int32_t max_model_len() const override { return runtime_->max_model_len(); }
  MemoryReport Memory() const override { return runtime_->Memory(); }

 private:
  const std::unique_ptr<Runtime> runtime_;
  ChangedExecutor executor_;
};

TEST(GpuIdentityTest, HoldsOnTheEmulatedDevice) {
  ChangedRuntime runtime([](const StepPlan&, StepResults*) {});
  const std::vector<IdentityCase> cases = CheckIdentity(&runtime, kShortPrompts, &runtime);
  EXPECT_GE(cases.size(), 12u);
  for (const IdentityCase& one : cases) {
    EXPECT_GT(one.compared, 0) << one.name;
    EXPECT_EQ(one.different, 0) << one.name << ": " << one.first;
  }
}

// A rounding in steps of several decodes, as another order of sums would bring.
TEST(GpuIdentityTest, NamesTheCaseThatDiffers) {
  ChangedRuntime runtime([](const StepPlan& plan, StepResults* results) {
    const auto* decode = std::get_if<DecodePlan>(&plan);
    if (decode == nullptr || decode->rows.size() < 2) return;
    std::vector<TokenLogprob>& named = results->draws[1].token.named_logprobs;
    if (!named.empty()) named.back().logprob *= 1 + 0x1p-20f;
  });
  for (const IdentityCase& one : CheckIdentity(&runtime, kShortPrompts)) {
    const bool changed = one.name == "decoded together, as graphs" ||
                         one.name == "decoded together, launch by launch";
    EXPECT_EQ(one.different > 0, changed) << one.name;
    EXPECT_EQ(one.first.empty(), !changed) << one.name;
  }
}

TEST(GpuIdentityTest, NamesADifferenceFromTheOtherDevice) {
  ChangedRuntime runtime([](const StepPlan&, StepResults*) {});
  ChangedRuntime other([](const StepPlan&, StepResults* results) {
    if (!results->reads.empty()) results->reads[0].values.values[3] += 0x1p-20f;
  });
  const std::vector<IdentityCase> cases = CheckIdentity(&runtime, kShortPrompts, &other);
  for (const IdentityCase& one : cases) {
    const bool beside = &one == &cases.back();
    EXPECT_EQ(one.different, beside ? 3 : 0) << one.name;  // all prompts but that of 40
  }
}

}  // namespace
}  // namespace skein
