#include "engine/cost_profile.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/random.h"

namespace skein {
namespace {

// A user of the default order did not ask for predictions, so the profile must hardly delay the
// server's start.
constexpr TimeUs kShortProfileUs = 700'000;
constexpr TimeUs kProfileUs = 4'000'000;

}  // namespace

StepProfiler::StepProfiler(Executor* executor, const Clock* clock, int32_t vocab_size,
                           int32_t num_kv_blocks, OutputSpec output, Retention retention)
    : executor_(executor),
      clock_(clock),
      vocab_size_(vocab_size),
      num_kv_blocks_(num_kv_blocks),
      output_(std::move(output)),
      retention_(retention) {}

double StepProfiler::MeasureUs(std::span<const ProfileRow> rows) {
  SKEIN_CHECK(!rows.empty());
  GenerateSpec greedy;
  greedy.sampling.temperature = 0;
  Random random(1);
  std::vector<std::vector<TokenId>> tokens;
  std::vector<std::vector<BlockId>> blocks;
  std::vector<DrawSpec> draws(rows.size());
  std::vector<OutputSpec> reads(rows.size(), output_);
  OneShotPlan plan;
  BlockId next_block = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const int32_t length = rows[i].cached_tokens + rows[i].new_tokens;
    auto& row_tokens = tokens.emplace_back(length);
    for (TokenId& token : row_tokens) {
      token = static_cast<TokenId>(random.Between(0, vocab_size_ - 1));
    }
    int32_t num_blocks = BlocksFor(length);
    if (!retains_all()) num_blocks = std::min(num_blocks, num_kv_blocks_ - next_block);
    SKEIN_CHECK(rows[i].cached_tokens <= num_blocks * kBlockTokens);
    auto& table = blocks.emplace_back(num_blocks);
    std::iota(table.begin(), table.end(), next_block);
    next_block += num_blocks;
    draws[i] = {.generate = &greedy, .history = row_tokens, .prompt_len = length};
    plan.rows.push_back({.sequence = MakeSequenceId(i, 0),
                         .begin = rows[i].cached_tokens,
                         .tokens = std::span(row_tokens).subspan(rows[i].cached_tokens),
                         .block_table = table,
                         .state = OwnState(*executor_, i, rows[i].cached_tokens)});
    if (std::holds_alternative<GenerateSpec>(output_)) {
      plan.rows.back().draws = std::span(draws).subspan(i, 1);
    } else {
      if (auto* decide = std::get_if<DecideSpec>(&reads[i])) {
        decide->markers = {rows[i].cached_tokens};
        decide->summary = rows[i].cached_tokens;
      }
      plan.rows.back().read = &reads[i];
    }
  }
  SKEIN_CHECK(next_block <= num_kv_blocks_);
  return RunUs(StepPlan(std::move(plan)));
}

double StepProfiler::RunUs(const StepPlan& step) {
  const std::atomic<bool> never{false};
  const TimeUs begin_us = clock_->NowUs();
  const std::unique_ptr<Task> task = executor_->Begin(step);
  SKEIN_CHECK(executor_->Resume(*task, never) == TaskStatus::kDone);
  return std::max(1.0, static_cast<double>(clock_->NowUs() - begin_us));
}

int64_t NumBlocksOf(const ProfileDecodes& decodes) {
  const int64_t own = BlocksFor(decodes.own_tokens);
  return decodes.num_groups * (decodes.shared_tokens / kBlockTokens + own * decodes.rows_per_group);
}

double StepProfiler::MeasureDecodesUs(const ProfileDecodes& decodes) {
  SKEIN_CHECK(draws() && NumBlocksOf(decodes) <= num_kv_blocks_);
  SKEIN_CHECK(decodes.shared_tokens % kBlockTokens == 0 && decodes.own_tokens >= 1);
  GenerateSpec greedy;
  greedy.sampling.temperature = 0;
  const int32_t length = decodes.shared_tokens + decodes.own_tokens;
  const int32_t num_rows = decodes.num_groups * decodes.rows_per_group;
  const std::vector<TokenId> tokens(length, vocab_size_ / 2);
  const DrawSpec draw{.generate = &greedy, .history = tokens, .prompt_len = length};
  std::vector<std::vector<BlockId>> blocks(num_rows);
  DecodePlan plan;
  BlockId next_block = 0;
  for (int32_t i = 0; i < num_rows; ++i) {
    std::vector<BlockId>& table = blocks[i];
    const int32_t num_shared = decodes.shared_tokens / kBlockTokens;
    table.resize(BlocksFor(length));
    const bool first = i % decodes.rows_per_group == 0;
    if (first) {
      std::iota(table.begin(), table.begin() + num_shared, next_block);
      next_block += num_shared;
    } else {
      std::copy_n(blocks[i - 1].begin(), num_shared, table.begin());
    }
    std::iota(table.begin() + num_shared, table.end(), next_block);
    next_block += static_cast<BlockId>(std::ssize(table)) - num_shared;
    plan.rows.push_back({.sequence = MakeSequenceId(i, 0),
                         .begin = length - 1,
                         .tokens = std::span(tokens).last(1),
                         .block_table = table,
                         .draws = std::span(&draw, 1),
                         .state = OwnState(*executor_, i, length - 1)});
  }
  return RunUs(StepPlan(std::move(plan)));
}

double StepProfiler::LeastUs(std::span<const ProfileRow> rows, int runs) {
  MeasureUs(rows);
  double least = MeasureUs(rows);
  for (int run = 1; run < runs; ++run) least = std::min(least, MeasureUs(rows));
  return least;
}

double StepProfiler::MedianUs(std::span<const ProfileRow> rows, int runs) {
  SKEIN_CHECK(runs > 0);
  std::vector<double> us(runs);
  for (double& time : us) time = MeasureUs(rows);
  std::ranges::sort(us);
  return (us[(runs - 1) / 2] + us[runs / 2]) / 2;
}

CostProfileLimits ProfileLimitsOf(const SchedulerConfig& config) {
  const bool whole = config.policies.retention != Retention::kAll;
  return {.max_step_tokens = std::max({config.max_num_batched_tokens, config.max_whole_prompt_len,
                                       whole ? config.max_model_len : 0}),
          .max_model_len = config.max_model_len,
          .cached = config.max_whole_prompt_len == 0,
          .max_rows = config.kv_storage == KvStorage::kContiguous ? 1 : 2,
          .time_us = config.policies.order == Order::kAuto ? kShortProfileUs : kProfileUs};
}

std::vector<CostSample> ProfileCosts(StepProfiler& profiler, const Clock& clock,
                                     const CostProfileLimits& limits) {
  constexpr size_t kMinSamples = 3;
  constexpr double kShortUs = 100'000;  // steps up to this time are measured twice
  const auto cacheable = static_cast<int32_t>(
      std::min<int64_t>(limits.max_model_len, int64_t{profiler.num_kv_blocks()} * kBlockTokens));
  const int32_t context = profiler.retains_all() ? cacheable : limits.max_model_len;
  const int32_t longest = std::min(limits.max_step_tokens, context - 1);
  if (longest < 1) return {};
  if (profiler.retains_all() && profiler.num_kv_blocks() < limits.max_rows) return {};
  const TimeUs end_us = clock.NowUs() + limits.time_us;
  std::vector<CostSample> samples;
  const auto fits = [&](const StepWork& work) {
    if (samples.size() < kMinSamples) return true;
    const double us = PredictUs(FitCosts(samples), work);
    return static_cast<double>(clock.NowUs()) + us <= static_cast<double>(end_us);
  };
  const auto measure = [&](const std::vector<ProfileRow>& rows) {
    StepWork work;
    for (const ProfileRow& row : rows) work += WorkOf(row.new_tokens, row.cached_tokens);
    if (!fits(work)) return;
    double us = profiler.MeasureUs(rows);
    if (us < kShortUs) us = std::min(us, profiler.MeasureUs(rows));
    samples.push_back({work, us});
  };
  const std::vector<ProfileRow> one = {{1, 0}};
  profiler.MeasureUs(one);  // warm-up: touches memory that no step has touched yet
  measure(one);
  // Two short rows, for comparison with one row of as many tokens. The difference separates a row's
  // cost from the step's cost.
  const int32_t few = std::min(16, longest / 2);
  if (few >= 1 && limits.max_rows > 1) measure({{few, 0}, {few, 0}});
  bool cached = limits.cached;
  for (int32_t tokens = 1; tokens <= longest; tokens *= 4) {
    if (tokens > 1) measure({{tokens, 0}});
    const int32_t before = std::min(cacheable / 2, context - 1 - tokens);
    if (cached && before > 0) measure({{tokens, before}});
    cached = limits.cached && !cached;
  }
  // The longest prompt that the time allows, since short prompts say little about attention.
  int32_t most = longest;
  while (most > 1 && !fits(WorkOf(most, 0))) most /= 2;
  measure({{most, 0}});
  return samples;
}

}  // namespace skein
