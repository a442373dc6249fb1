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

// A user of the default order did not ask for predictions, so the profile must hardly keep the
// machine busy.
constexpr TimeUs kShortProfileUs = 700'000;
constexpr TimeUs kProfileUs = 4'000'000;

// Steps up to this time, and up to this share of a profile's, are measured twice.
constexpr double kShortStepUs = 100'000, kShortStepShare = 0.25;
constexpr size_t kMinCostSamples = 3;

}  // namespace

StepProfiler::StepProfiler(Executor* executor, const Clock* clock, int32_t vocab_size,
                           int32_t num_kv_blocks, OutputSpec output, Retention retention)
    : executor_(executor),
      clock_(clock),
      vocab_size_(vocab_size),
      blocks_(num_kv_blocks),
      states_(executor->num_states()),
      output_(std::move(output)),
      retention_(retention) {
  std::iota(blocks_.begin(), blocks_.end(), 0);
  std::iota(states_.begin(), states_.end(), 0);
}

void StepProfiler::UseFreeMemory(int32_t most_blocks, BlockManager* blocks) {
  StatePool& states = blocks->states();
  blocks_.resize(std::min(most_blocks, blocks->num_free()));
  for (BlockId& block : blocks_) block = blocks->Allocate();
  states_.resize(states.num_available() - states.num_snapshots());
  for (StateId& state : states_) state = states.Take();
  // The last comes back first, so that the lists of free ones are as they were.
  for (size_t i = states_.size(); i-- > 0;) states.Unref(states_[i]);
  blocks->Release(blocks_);
  std::ranges::sort(blocks_);
}

RowState StepProfiler::StateOf(int64_t slot, int32_t begin) const {
  if (executor_->num_states() == 0) return {};
  const StateId state = states_[slot % std::ssize(states_)];
  return {.from = begin > 0 ? state : kNoState, .to = state};
}

bool StepProfiler::Fits(std::span<const ProfileRow> rows) const {
  if (executor_->num_states() > 0 && states_.empty()) return false;
  int64_t num_blocks = 0;
  for (const ProfileRow& row : rows) {
    num_blocks += BlocksFor(row.cached_tokens + (retains_all() ? row.new_tokens : 0));
  }
  return num_blocks <= num_kv_blocks();
}

bool StepProfiler::Fits(const ProfileDecodes& decodes) const {
  const bool has_states = executor_->num_states() == 0 || !states_.empty();
  return has_states && NumBlocksOf(decodes) <= num_kv_blocks();
}

double StepProfiler::MeasureUs(std::span<const ProfileRow> rows) {
  const std::atomic<bool> never{false};
  return *TryUs(rows, never);
}

std::optional<double> StepProfiler::TryUs(std::span<const ProfileRow> rows,
                                          const std::atomic<bool>& stop) {
  SKEIN_CHECK(!rows.empty());
  GenerateSpec greedy;
  greedy.sampling.temperature = 0;
  Random random(1);
  std::vector<std::vector<TokenId>> tokens;
  std::vector<std::vector<BlockId>> blocks;
  std::vector<DrawSpec> draws(rows.size());
  std::vector<OutputSpec> reads(rows.size(), output_);
  OneShotPlan plan;
  int32_t next_block = 0;  // in blocks_
  for (size_t i = 0; i < rows.size(); ++i) {
    const int32_t length = rows[i].cached_tokens + rows[i].new_tokens;
    auto& row_tokens = tokens.emplace_back(length);
    for (TokenId& token : row_tokens) {
      token = static_cast<TokenId>(random.Between(0, vocab_size_ - 1));
    }
    int32_t num_blocks = BlocksFor(length);
    if (!retains_all()) num_blocks = std::min(num_blocks, num_kv_blocks() - next_block);
    SKEIN_CHECK(rows[i].cached_tokens <= num_blocks * kBlockTokens);
    SKEIN_CHECK(next_block + num_blocks <= num_kv_blocks());
    const auto first = blocks_.begin() + next_block;
    auto& table = blocks.emplace_back(first, first + num_blocks);
    next_block += num_blocks;
    draws[i] = {.generate = &greedy, .history = row_tokens, .prompt_len = length};
    plan.rows.push_back({.sequence = MakeSequenceId(i, 0),
                         .begin = rows[i].cached_tokens,
                         .tokens = std::span(row_tokens).subspan(rows[i].cached_tokens),
                         .block_table = table,
                         .state = StateOf(static_cast<int64_t>(i), rows[i].cached_tokens)});
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
  return RunUs(StepPlan(std::move(plan)), stop);
}

std::optional<double> StepProfiler::RunUs(const StepPlan& step, const std::atomic<bool>& stop) {
  const TimeUs begin_us = clock_->NowUs();
  const std::unique_ptr<Task> task = executor_->Begin(step);
  while (executor_->Resume(*task, stop) == TaskStatus::kPreempted) {
    if (stop.load()) return std::nullopt;
  }
  return std::max(1.0, static_cast<double>(clock_->NowUs() - begin_us));
}

int64_t NumBlocksOf(const ProfileDecodes& decodes) {
  const int64_t own = BlocksFor(decodes.own_tokens);
  return decodes.num_groups * (decodes.shared_tokens / kBlockTokens + own * decodes.rows_per_group);
}

std::optional<double> StepProfiler::TryDecodesUs(const ProfileDecodes& decodes,
                                                 const std::atomic<bool>& stop) {
  SKEIN_CHECK(draws() && Fits(decodes));
  SKEIN_CHECK(decodes.shared_tokens % kBlockTokens == 0 && decodes.own_tokens >= 1);
  GenerateSpec greedy;
  greedy.sampling.temperature = 0;
  const int32_t length = decodes.shared_tokens + decodes.own_tokens;
  const int32_t num_rows = decodes.num_groups * decodes.rows_per_group;
  const std::vector<TokenId> tokens(length, vocab_size_ / 2);
  const DrawSpec draw{.generate = &greedy, .history = tokens, .prompt_len = length};
  std::vector<std::vector<BlockId>> blocks(num_rows);
  DecodePlan plan;
  auto next_block = blocks_.begin();
  const auto take = [&](auto from, auto to) {
    const auto begin = std::exchange(next_block, next_block + (to - from));
    std::copy(begin, next_block, from);
  };
  for (int32_t i = 0; i < num_rows; ++i) {
    std::vector<BlockId>& table = blocks[i];
    const int32_t num_shared = decodes.shared_tokens / kBlockTokens;
    table.resize(BlocksFor(length));
    const bool first = i % decodes.rows_per_group == 0;
    if (first) {
      take(table.begin(), table.begin() + num_shared);
    } else {
      std::copy_n(blocks[i - 1].begin(), num_shared, table.begin());
    }
    take(table.begin() + num_shared, table.end());
    plan.rows.push_back({.sequence = MakeSequenceId(i, 0),
                         .begin = length - 1,
                         .tokens = std::span(tokens).last(1),
                         .block_table = table,
                         .draws = std::span(&draw, 1),
                         .state = StateOf(i, length - 1)});
  }
  return RunUs(StepPlan(std::move(plan)), stop);
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

CostProfile::CostProfile(StepProfiler* profiler, const Clock* clock,
                         const CostProfileLimits& limits)
    : profiler_(profiler), clock_(clock), limit_us_(limits.time_us) {
  const auto cacheable = static_cast<int32_t>(
      std::min<int64_t>(limits.max_model_len, int64_t{profiler->num_kv_blocks()} * kBlockTokens));
  const int32_t context = profiler->retains_all() ? cacheable : limits.max_model_len;
  const int32_t longest = std::min(limits.max_step_tokens, context - 1);
  if (longest < 1) return;
  if (profiler->retains_all() && profiler->num_kv_blocks() < limits.max_rows) return;
  steps_ = {{{1, 0}}};
  // Two short rows, for comparison with one row of as many tokens. The difference separates a row's
  // cost from the step's cost.
  const int32_t few = std::min(16, longest / 2);
  if (few >= 1 && limits.max_rows > 1) steps_.push_back({{few, 0}, {few, 0}});
  bool cached = limits.cached;
  for (int32_t tokens = 1; tokens <= longest; tokens *= 4) {
    if (tokens > 1) steps_.push_back({{tokens, 0}});
    const int32_t before = std::min(cacheable / 2, context - 1 - tokens);
    if (cached && before > 0) steps_.push_back({{tokens, before}});
    cached = limits.cached && !cached;
  }
  steps_.push_back({{longest, 0}});
}

bool CostProfile::IsInTime(const StepWork& work) const {
  if (samples_.size() < kMinCostSamples) return true;
  return static_cast<double>(used_us_) + PredictUs(FitCosts(samples_), work) <=
         static_cast<double>(limit_us_);
}

bool CostProfile::Measure(const std::atomic<bool>& stop) {
  std::vector<ProfileRow> rows = steps_[next_];
  if (next_ + 1 == steps_.size()) {
    // The longest prompt that the time allows, since short prompts say little about attention.
    int32_t& most = rows.front().new_tokens;
    while (most > 1 && !IsInTime(WorkOf(most, 0))) most /= 2;
  }
  StepWork work;
  for (const ProfileRow& row : rows) work += WorkOf(row.new_tokens, row.cached_tokens);
  const bool fits = profiler_->Fits(rows);
  if (!fits || !IsInTime(work)) {
    lacked_memory_ |= !fits;
    ++next_;
    return true;
  }
  const std::optional<double> us = LeastOfTwoUs(rows, stop);
  if (!us) return false;
  samples_.push_back({work, *us});
  ++next_;
  return true;
}

// The time of a long step is measured once. The first step of all has a run that is not counted: it
// touches memory that no step has touched yet.
std::optional<double> CostProfile::LeastOfTwoUs(std::span<const ProfileRow> rows,
                                                const std::atomic<bool>& stop) {
  const double short_us = std::min(kShortStepUs, kShortStepShare * static_cast<double>(limit_us_));
  double least_us = short_us;
  for (int run = next_ == 0 ? -1 : 0; run < 2; ++run) {
    const TimeUs begin_us = clock_->NowUs();
    const std::optional<double> us = profiler_->TryUs(rows, stop);
    used_us_ += clock_->NowUs() - begin_us;
    if (!us) return std::nullopt;
    if (run < 0) continue;
    if (run == 0 && *us >= short_us) return us;
    least_us = std::min(least_us, *us);
  }
  return least_us;
}

std::vector<CostSample> ProfileCosts(StepProfiler& profiler, const Clock& clock,
                                     const CostProfileLimits& limits) {
  const std::atomic<bool> never{false};
  CostProfile profile(&profiler, &clock, limits);
  while (!profile.done()) profile.Measure(never);
  return profile.samples();
}

}  // namespace skein
