#include "apps/model/mil_run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace skein {

Result<std::unique_ptr<MilRun>> MilRun::Load(const MilRunOptions& options, const PrefillMode& mode,
                                             int32_t num_tokens) {
  SKEIN_CHECK(num_tokens >= 1);
  CpuRuntimeOptions runtime;
  runtime.model_dir = options.model_dir;
  runtime.dtype = options.dtype;
  runtime.threads = options.threads;
  runtime.max_model_len = num_tokens;
  runtime.max_num_seqs = 1;
  runtime.execution = mode.execution;
  runtime.retention = mode.retention;
  runtime.chunk_outputs = mode.chunk_outputs;
  runtime.chunk_tokens = options.chunk_tokens;
  runtime.weights_loaded = options.weights_loaded;
  // A mode that keeps no keys and values, or only a prefix, computes a prompt in one step, whatever
  // the token budget.
  runtime.max_num_batched_tokens = mode.retention != Retention::kAll ? 1
                                   : mode.in_steps ? std::min(num_tokens, kHybridChunkTokens)
                                                   : num_tokens;
  runtime.num_kv_blocks = std::max(1, KvBlocksOf(mode, num_tokens));
  SKEIN_ASSIGN_OR_RETURN(std::unique_ptr<CpuRuntime> loaded, CpuRuntime::Load(runtime));
  if (loaded->config().head != Head::kLanguageModel) {
    return Status(StatusCode::kUnsupported, "the model has no output matrix to read labels of");
  }
  return std::unique_ptr<MilRun>(new MilRun(mode, num_tokens, std::move(loaded)));
}

MilRun::MilRun(const PrefillMode& mode, int32_t num_tokens, std::unique_ptr<CpuRuntime> runtime)
    : mode_(mode),
      tokens_(num_tokens),
      blocks_(KvBlocksOf(mode, num_tokens)),
      read_(LabelSpec{.tokens = {0, 1}}),
      runtime_(std::move(runtime)) {
  const int32_t vocab = runtime_->config().vocab_size;
  for (int32_t i = 0; i < num_tokens; ++i) {
    tokens_[i] = std::min(static_cast<TokenId>(UniformAt(1, 0, i) * vocab), vocab - 1);
  }
  std::iota(blocks_.begin(), blocks_.end(), 0);
}

double MilRun::Run(int32_t num_tokens) {
  SKEIN_CHECK(num_tokens >= 1 && num_tokens <= std::ssize(tokens_));
  const int32_t step_tokens = mode_.in_steps ? kHybridChunkTokens : num_tokens;
  const std::atomic<bool> never{false};
  const auto start = std::chrono::steady_clock::now();
  for (int32_t begin = 0; begin < num_tokens; begin += step_tokens) {
    const int32_t end = std::min(begin + step_tokens, num_tokens);
    const auto num_blocks = std::min(std::ssize(blocks_), std::ptrdiff_t{BlocksFor(end)});
    PlanRow row = {.begin = begin,
                   .tokens = std::span(tokens_).subspan(begin, end - begin),
                   .block_table = std::span(blocks_).first(num_blocks),
                   .state = OwnState(runtime_->executor(), 0, begin)};
    if (end == num_tokens) row.read = &read_;
    const StepPlan plan = mode_.in_steps ? StepPlan(MixedPlan{.prefills = {row}})
                                         : StepPlan(OneShotPlan{.rows = {row}});
    const std::unique_ptr<Task> task = runtime_->executor().Begin(plan);
    SKEIN_CHECK(runtime_->executor().Resume(*task, never) == TaskStatus::kDone);
    if (end == num_tokens) {
      const ReadResult& result = runtime_->executor().Results(*task).reads.at(0);
      SKEIN_CHECK(result.finite);
      values_ = result.values.values;
    }
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace skein
