#include "sched/config.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "sched/decode_set/stop_table.h"
#include "sched/plan.h"
#include "skein/choice_names.h"

namespace skein {
namespace {

constexpr int64_t kMax = 1 << 30;
constexpr TimeUs kMaxTimeUs = TimeUs{1000} * kMax;
constexpr double kMaxAging = 100;
constexpr int32_t kMaxSuspendedSteps = 64;
// At most one block in this many is kept free for preempting requests.
constexpr int32_t kExpressShare = 8;

Status Refuse(const char* member, std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message), member};
}

Status CheckRange(const char* name, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return Status::Ok();
  return Refuse(name, fmt::format("{} is {}, must be in [{}, {}]", name, value, low, high));
}

Status CheckPreemption(const PreemptionConfig& config) {
  SKEIN_RETURN_IF_ERROR(
      CheckRange("max_suspended_steps", config.max_suspended_steps, 1, kMaxSuspendedSteps));
  SKEIN_RETURN_IF_ERROR(CheckRange("max_suspended_us", config.max_suspended_us, 1, kMaxTimeUs));
  return CheckRange("express_tokens", config.express_tokens, 0, kMax);
}

Status CheckJct(const JctConfig& config) {
  if (config.aging >= 0 && config.aging <= kMaxAging) return Status::Ok();
  return Refuse("aging", fmt::format("aging is {}, must be in [0, {}]", config.aging, kMaxAging));
}

Status CheckDeadlines(const DeadlineConfig& config) {
  SKEIN_RETURN_IF_ERROR(CheckRange("default_slo_us", config.default_slo_us, 1, kMaxTimeUs));
  SKEIN_RETURN_IF_ERROR(CheckRange("max_late_us", config.max_late_us, 0, kMaxTimeUs));
  return CheckRange("slo_batch_tokens", config.slo_batch_tokens, 1, kMax);
}

Status CheckDecodeSet(const SchedulerConfig& config) {
  SKEIN_RETURN_IF_ERROR(CheckRange("dynamic_step_us", config.dynamic_step_us, 0, kMaxTimeUs));
  if (config.dynamic_step_us > 0 && config.policies.decode_set != DecodeSet::kDynamic) {
    return Refuse("dynamic_step_us", "dynamic_step_us needs decode_set dynamic");
  }
  const PrefixGroupOptions& groups = config.prefix_groups;
  SKEIN_RETURN_IF_ERROR(CheckRange("stop_max_wait_us", groups.max_wait_us, 1, kMaxTimeUs));
  SKEIN_RETURN_IF_ERROR(CheckRange("stop_max_wait_stretch", groups.max_wait_stretch, 0, 1000));
  if (groups.learned == nullptr) return Status::Ok();
  SKEIN_RETURN_IF_ERROR(CheckStopRuleLearns(config));
  if (groups.learned->rule == groups.stop.rule) return Status::Ok();
  return Refuse("stop_table", fmt::format("stop_table was learned by '{}', stop_rule is '{}'",
                                          NameOf(groups.learned->rule), NameOf(groups.stop.rule)));
}

Status CheckLimits(const SchedulerConfig& config) {
  SKEIN_RETURN_IF_ERROR(CheckRange("num_kv_blocks", config.num_kv_blocks, 1, kMax));
  if (config.num_states != 0) {
    // A row may start from one state and end in another state.
    SKEIN_RETURN_IF_ERROR(CheckRange("num_states", config.num_states, 2, kMax));
  }
  SKEIN_RETURN_IF_ERROR(CheckRange("max_model_len", config.max_model_len, 2, kMax));
  SKEIN_RETURN_IF_ERROR(CheckRange("num_adapters", config.num_adapters, 1, kMax));
  SKEIN_RETURN_IF_ERROR(CheckRange("max_num_seqs", config.max_num_seqs, 1, kMaxSamples));
  // Every running sequence takes one token in every step.
  SKEIN_RETURN_IF_ERROR(CheckRange("max_num_batched_tokens", config.max_num_batched_tokens,
                                   config.max_num_seqs, kMax));
  return CheckRange("max_prefix_wait_us", config.max_prefix_wait_us, 0, kMaxTimeUs);
}

// If the policies name a chunk, it becomes the number of tokens of a step.
Status SetStepTokens(SchedulerConfig* config) {
  const int32_t chunk = config->policies.chunk_tokens;
  SKEIN_RETURN_IF_ERROR(CheckRange("chunk_tokens", chunk, 0, kMax));
  if (chunk == 0) return Status::Ok();
  if (chunk >= config->max_num_seqs && chunk <= config->max_num_batched_tokens) {
    config->max_num_batched_tokens = chunk;
    return Status::Ok();
  }
  return Refuse("chunk_tokens",
                fmt::format("chunk_tokens is {}, must be in [max_num_seqs = {}, "
                            "max_num_batched_tokens = {}]",
                            chunk, config->max_num_seqs, config->max_num_batched_tokens));
}

// REQUIRES: SetContiguous and SetWholePrompts were called.
Status CheckHostBlocks(const SchedulerConfig& config) {
  SKEIN_RETURN_IF_ERROR(CheckRange("num_host_kv_blocks", config.num_host_kv_blocks, 0, kMax));
  if (config.num_host_kv_blocks == 0) return Status::Ok();
  const auto refuse = [](const std::string& why) {
    return Refuse("num_host_kv_blocks", "num_host_kv_blocks needs " + why);
  };
  if (!config.prefix_caching) return refuse("prefix caching");
  if (config.num_states > 0) return refuse("a model without linear layers");
  if (config.max_whole_prompt_len > 0) return refuse("prompts that need not run whole");
  return Status::Ok();
}

Status SetContiguous(SchedulerConfig* config) {
  if (config->kv_storage != KvStorage::kContiguous) return Status::Ok();
  if (config->max_num_seqs != 1) {
    return Refuse("max_num_seqs",
                  fmt::format("max_num_seqs is {}, must be 1 where the KV storage is contiguous",
                              config->max_num_seqs));
  }
  if (config->policies.retention != Retention::kAll) {
    return Refuse("retention", "retention must be 'all' where the KV storage is contiguous");
  }
  config->policies.forests = false;
  config->prefix_caching = false;
  return Status::Ok();
}

// `decodes`: the most in the same step. `long_tokens`: EngineConfig::long_prompt_tokens.
Status SetWholePrompts(int32_t decodes, int32_t long_tokens, SchedulerConfig* config) {
  const int32_t step_tokens = config->max_num_batched_tokens;
  SKEIN_RETURN_IF_ERROR(
      CheckRange("max_num_batched_tokens", step_tokens, int64_t{decodes} + 1, kMax));
  const bool any_length = config->policies.retention != Retention::kAll &&
                          !config->force_decode_path;  // a step then takes longer prompts, too
  config->max_whole_prompt_len =
      any_length ? config->max_model_len
                 : std::min(std::max(step_tokens - decodes, long_tokens), config->max_model_len);
  return Status::Ok();
}

}  // namespace

int32_t NumSteps(const SchedulerConfig& config) {
  const bool stops = Preempts(config.policies.sharing) && StopsSteps(config.policies.granularity);
  return stops ? 1 + config.preemption.max_suspended_steps : 1;
}

int32_t ExpressBlocks(const SchedulerConfig& config) {
  if (!Preempts(config.policies.sharing)) return 0;
  return std::min(BlocksFor(config.preemption.express_tokens),
                  config.num_kv_blocks / kExpressShare);
}

int32_t MaxTailLen(const SchedulerConfig& config) {
  const bool any_length = config.policies.retention != Retention::kAll && !config.force_decode_path;
  return any_length ? config.max_model_len
                    : std::min(config.max_num_batched_tokens, config.max_model_len);
}

int32_t UsualBatchedTokens(const SchedulerConfig& config, int32_t usual) {
  return std::max({usual, config.max_num_seqs, config.policies.chunk_tokens});
}

Status CheckStopRuleLearns(const SchedulerConfig& config) {
  if (config.policies.decode_set == DecodeSet::kPrefixHomogeneous &&
      Learns(config.prefix_groups.stop.rule)) {
    return Status::Ok();
  }
  return Refuse(
      "stop_table",
      "stop_table needs decode_set prefix-homogeneous and a stop_rule that learns: bandit or "
      "q-learning");
}

StepBounds StepBoundsOf(Retention retention, int32_t max_model_len,
                        int32_t max_num_batched_tokens) {
  if (retention == Retention::kAll) return {max_num_batched_tokens, 0};
  // One prompt of a step may be longer than the remaining budget.
  return {max_model_len + max_num_batched_tokens,
          BlocksFor(max_model_len) + BlocksFor(max_num_batched_tokens) + 1};
}

Result<SchedulerConfig> MakeSchedulerConfig(const EngineConfig& config) {
  SchedulerConfig scheduler = config.scheduler;
  SKEIN_RETURN_IF_ERROR(CheckLimits(scheduler));
  SKEIN_RETURN_IF_ERROR(SetStepTokens(&scheduler));
  if (config.reads_whole_prompts) {
    const int32_t decodes = config.generates ? scheduler.max_num_seqs : 0;
    SKEIN_RETURN_IF_ERROR(SetWholePrompts(decodes, config.long_prompt_tokens, &scheduler));
  }
  SKEIN_RETURN_IF_ERROR(SetContiguous(&scheduler));
  SKEIN_RETURN_IF_ERROR(CheckHostBlocks(scheduler));
  SKEIN_RETURN_IF_ERROR(CheckDeadlines(scheduler.deadlines));
  SKEIN_RETURN_IF_ERROR(CheckPreemption(scheduler.preemption));
  SKEIN_RETURN_IF_ERROR(CheckJct(scheduler.jct));
  SKEIN_RETURN_IF_ERROR(CheckDecodeSet(scheduler));
  return scheduler;
}

}  // namespace skein
