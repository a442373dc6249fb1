#include "sched/config.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "sched/plan.h"

namespace skein {
namespace {

constexpr double kMaxAging = 100;

struct Preset {
  std::string_view name;
  Sharing sharing;
  DecodeSet decode_set;
  Order order = Order::kFcfs;
  bool forests = false;
  Batching batching = Batching::kBudget;
  Execution execution = Execution::kPlain;
  Retention retention = Retention::kAll;
  int32_t chunk_tokens = 0;  // of a step in place of max_num_batched_tokens; 0: that
  TimeUs max_decode_wait_us = 0;
};

constexpr std::array<Preset, 15> kPresets = {{
    {"prelude", Sharing::kChunked, DecodeSet::kFill, Order::kFair, true},
    {"vllm-fcfs", Sharing::kChunked, DecodeSet::kFill},
    {"chunked-fcfs", Sharing::kChunked, DecodeSet::kFill},
    {"paged-fcfs", Sharing::kWhole, DecodeSet::kFill},
    {"nano-vllm", Sharing::kChunked, DecodeSet::kFill},
    {"request-level", Sharing::kWhole, DecodeSet::kStatic},
    {"prefill-only", Sharing::kWhole, DecodeSet::kFill, Order::kSrjfCalibrated, false,
     Batching::kSaturate, Execution::kHybrid, Retention::kPrefix, 0, 1'000'000},
    {"feather", Sharing::kChunked, DecodeSet::kFlock},
    {"sglang-lpm", Sharing::kChunked, DecodeSet::kFill, Order::kLpm},
    {"sglang-dfs-weight", Sharing::kChunked, DecodeSet::kFill, Order::kDfsWeight},
    {"distserve", Sharing::kWhole, DecodeSet::kFill},
    {.name = "distserve-cp2k",
     .sharing = Sharing::kChunked,
     .decode_set = DecodeSet::kFill,
     .order = Order::kEdf,
     .chunk_tokens = 2048},
    {.name = "distserve-cp8k",
     .sharing = Sharing::kChunked,
     .decode_set = DecodeSet::kFill,
     .order = Order::kEdf,
     .chunk_tokens = 8192},
    {"layer-level", Sharing::kPreemptLayer, DecodeSet::kFill, Order::kSlackEdf, false,
     Batching::kSloAware},
    {"flow-prefill", Sharing::kPreemptOp, DecodeSet::kFill, Order::kSlackEdf, false,
     Batching::kSloAware},
}};

constexpr int32_t kMaxSuspendedSteps = 64;

template <typename Value>
using Names = std::span<const std::pair<std::string_view, Value>>;

constexpr std::pair<std::string_view, Execution> kExecutions[] = {{"plain", Execution::kPlain},
                                                                  {"hybrid", Execution::kHybrid}};
constexpr std::pair<std::string_view, Retention> kRetentions[] = {{"all", Retention::kAll},
                                                                  {"prefix", Retention::kPrefix},
                                                                  {"value", Retention::kValue},
                                                                  {"none", Retention::kNone}};
constexpr std::pair<std::string_view, Order> kOrders[] = {
    {"fcfs", Order::kFcfs},
    {"fair", Order::kFair},
    {"srjf", Order::kSrjf},
    {"srjf-calibrated", Order::kSrjfCalibrated},
    {"edf", Order::kEdf},
    {"d-edf", Order::kDeadlineEdf},
    {"s-edf", Order::kSlackEdf},
    {"lpm", Order::kLpm},
    {"dfs-weight", Order::kDfsWeight}};
constexpr std::pair<std::string_view, Sharing> kSharings[] = {
    {"whole", Sharing::kWhole},
    {"chunked", Sharing::kChunked},
    {"preempt-layer", Sharing::kPreemptLayer},
    {"preempt-op", Sharing::kPreemptOp}};
constexpr std::pair<std::string_view, Granularity> kGranularities[] = {
    {"op-tile", Granularity::kOpTile},
    {"op", Granularity::kOp},
    {"layer", Granularity::kLayer},
    {"chunk", Granularity::kChunk},
    {"none", Granularity::kNone}};
constexpr std::pair<std::string_view, DecodeSteps> kDecodeSteps[] = {
    {"by-cost", DecodeSteps::kByCost}, {"own", DecodeSteps::kOwn}, {"mixed", DecodeSteps::kMixed}};
constexpr std::pair<std::string_view, Batching> kBatchings[] = {{"single", Batching::kSingle},
                                                                {"saturate", Batching::kSaturate},
                                                                {"budget", Batching::kBudget},
                                                                {"slo-aware", Batching::kSloAware}};
constexpr std::pair<std::string_view, DecodeSet> kDecodeSets[] = {{"static", DecodeSet::kStatic},
                                                                  {"fill", DecodeSet::kFill},
                                                                  {"flock", DecodeSet::kFlock},
                                                                  {"dynamic", DecodeSet::kDynamic}};
constexpr std::pair<std::string_view, FlockBy> kFlockBys[] = {
    {"prefix", FlockBy::kPrefix}, {"radix", FlockBy::kRadix}, {"user", FlockBy::kUser}};
constexpr std::pair<std::string_view, Jct> kJcts[] = {{"proxy", Jct::kMissingTokens},
                                                      {"model", Jct::kModel}};

// Sets `*value` to the meaning of `name`; an empty name changes nothing.
template <typename Value>
Status Choose(const char* member, const std::string& name, Names<Value> names, Value* value) {
  if (name.empty()) return Status::Ok();
  std::string known;
  for (const auto& [its_name, its_value] : names) {
    if (its_name == name) {
      *value = its_value;
      return Status::Ok();
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", its_name);
  }
  return {StatusCode::kInvalidArgument,
          fmt::format("{} is '{}', must be one of: {}", member, name, known), member};
}

Status CheckRange(const char* name, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return Status::Ok();
  return {StatusCode::kInvalidArgument,
          fmt::format("{} is {}, must be in [{}, {}]", name, value, low, high), name};
}

Status CheckLearns(const SchedulerConfig& scheduler) {
  if (scheduler.decode_set == DecodeSet::kFlock && Learns(scheduler.flock.stop.rule)) {
    return Status::Ok();
  }
  return {StatusCode::kInvalidArgument,
          "flock_table needs decode_set flock and a flock_stop that learns: bandit or q-learning",
          "flock_table"};
}

Status ApplyFlock(const EngineConfig& config, SchedulerConfig* scheduler) {
  SKEIN_RETURN_IF_ERROR(CheckRange("flock_max_wait_ms", config.flock_max_wait_ms, 1, 1 << 30));
  FlockOptions& flock = scheduler->flock;
  flock.max_wait_us = TimeUs{1000} * config.flock_max_wait_ms;
  flock.stop.seed = config.flock_seed;
  if (!config.flock_stop.empty()) {
    SKEIN_ASSIGN_OR_RETURN(flock.stop.rule, ParseStopRule(config.flock_stop));
  }
  SKEIN_RETURN_IF_ERROR(Choose<FlockBy>("flock_by", config.flock_by, kFlockBys, &flock.by));
  SKEIN_RETURN_IF_ERROR(SetStopConstants(config.flock_constants, &flock.stop));
  if (config.flock_table.empty()) return Status::Ok();
  SKEIN_RETURN_IF_ERROR(CheckLearns(*scheduler));
  Result<StopTable> table = StopTable::FromJson(config.flock_table);
  if (!table.ok()) {
    return {StatusCode::kInvalidArgument, "flock_table: " + table.status().message(),
            "flock_table"};
  }
  if (table->rule != flock.stop.rule) {
    return {StatusCode::kInvalidArgument,
            fmt::format("flock_table was learned by '{}', flock_stop is '{}'", NameOf(table->rule),
                        NameOf(flock.stop.rule)),
            "flock_table"};
  }
  scheduler->flock_learned = std::make_shared<const StopTable>(std::move(table).value());
  return Status::Ok();
}

// Applies the decode set and the options that belong to one set only. Those are refused with
// another set.
Status ApplyDecodeSet(const EngineConfig& config, SchedulerConfig* scheduler) {
  SKEIN_RETURN_IF_ERROR(
      Choose<DecodeSet>("decode_set", config.decode_set, kDecodeSets, &scheduler->decode_set));
  SKEIN_RETURN_IF_ERROR(CheckRange("dynamic_step_ms", config.dynamic_step_ms, 0, 1 << 30));
  if (config.dynamic_step_ms > 0 && scheduler->decode_set != DecodeSet::kDynamic) {
    return {StatusCode::kInvalidArgument, "dynamic_step_ms needs decode_set dynamic",
            "dynamic_step_ms"};
  }
  scheduler->dynamic_step_us = TimeUs{1000} * config.dynamic_step_ms;
  const std::pair<const char*, const std::string&> of_flock[] = {
      {"flock_stop", config.flock_stop},
      {"flock_by", config.flock_by},
      {"flock_constants", config.flock_constants}};
  for (const auto& [member, value] : of_flock) {
    if (value.empty() || scheduler->decode_set == DecodeSet::kFlock) continue;
    return {StatusCode::kInvalidArgument, fmt::format("{} needs decode_set flock", member), member};
  }
  return ApplyFlock(config, scheduler);
}

Result<Preset> PresetOf(const std::string& name) {
  std::string known;
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", preset.name);
  }
  return Status(StatusCode::kInvalidArgument,
                fmt::format("preset is '{}', must be one of: {}", name, known), "preset");
}

Status ApplyDeadlines(const EngineConfig& config, SchedulerConfig* scheduler) {
  constexpr int32_t kMax = 1 << 30;
  SKEIN_RETURN_IF_ERROR(CheckRange("default_slo_ttft_ms", config.default_slo_ttft_ms, 1, kMax));
  SKEIN_RETURN_IF_ERROR(CheckRange("max_late_ms", config.max_late_ms, 0, kMax));
  SKEIN_RETURN_IF_ERROR(CheckRange("slo_batch_tokens", config.slo_batch_tokens, 1, kMax));
  scheduler->default_slo_us = TimeUs{1000} * config.default_slo_ttft_ms;
  scheduler->max_late_us = TimeUs{1000} * config.max_late_ms;
  scheduler->slo_batch_tokens = config.slo_batch_tokens;
  return Status::Ok();
}

// Tokens of the chunk that the preset or `config` asks for; 0: none.
int32_t ChunkTokens(const EngineConfig& config, const Preset& preset) {
  return config.chunk_tokens > 0 ? config.chunk_tokens : preset.chunk_tokens;
}

// Tokens of a step: that chunk, or else max_num_batched_tokens.
Result<int32_t> StepTokens(const EngineConfig& config, const Preset& preset) {
  SKEIN_RETURN_IF_ERROR(CheckRange("chunk_tokens", config.chunk_tokens, 0, 1 << 30));
  const int32_t chunk = ChunkTokens(config, preset);
  if (chunk == 0) return config.max_num_batched_tokens;
  if (chunk >= config.max_num_seqs && chunk <= config.max_num_batched_tokens) return chunk;
  return Status(StatusCode::kInvalidArgument,
                fmt::format("chunk_tokens is {}, must be in [max_num_seqs = {}, "
                            "max_num_batched_tokens = {}]",
                            chunk, config.max_num_seqs, config.max_num_batched_tokens),
                "chunk_tokens");
}

// At most one block in this many is kept free for preempting requests.
constexpr int32_t kExpressShare = 8;

// Applies the sharing and preemption options of `config` over those of the preset.
Status ApplySharing(const EngineConfig& config, SchedulerConfig* scheduler) {
  SKEIN_RETURN_IF_ERROR(Choose<Sharing>("sharing", config.sharing, kSharings, &scheduler->sharing));
  const bool by_layer = scheduler->sharing == Sharing::kPreemptLayer;
  scheduler->granularity = by_layer ? Granularity::kLayer : Granularity::kOpTile;
  SKEIN_RETURN_IF_ERROR(
      CheckRange("max_suspended_steps", config.max_suspended_steps, 1, kMaxSuspendedSteps));
  SKEIN_RETURN_IF_ERROR(CheckRange("max_suspended_ms", config.max_suspended_ms, 1, 1 << 30));
  scheduler->max_suspended_steps = config.max_suspended_steps;
  scheduler->max_suspended_us = TimeUs{1000} * config.max_suspended_ms;
  if (!config.preempt_granularity.empty() && !Preempts(scheduler->sharing)) {
    return {StatusCode::kInvalidArgument,
            "preempt_granularity needs a sharing that preempts: preempt-op or preempt-layer",
            "preempt_granularity"};
  }
  SKEIN_RETURN_IF_ERROR(Choose<Granularity>("preempt_granularity", config.preempt_granularity,
                                            kGranularities, &scheduler->granularity));
  SKEIN_RETURN_IF_ERROR(Choose<DecodeSteps>("decode_steps", config.decode_steps, kDecodeSteps,
                                            &scheduler->decode_steps));
  SKEIN_RETURN_IF_ERROR(CheckRange("express_tokens", config.express_tokens, 0, 1 << 30));
  if (Preempts(scheduler->sharing)) {
    scheduler->express_blocks =
        std::min(BlocksFor(config.express_tokens), config.num_kv_blocks / kExpressShare);
  }
  return Status::Ok();
}

Status ApplyChoices(const EngineConfig& config, SchedulerConfig* scheduler) {
  SKEIN_RETURN_IF_ERROR(ApplyDeadlines(config, scheduler));
  SKEIN_RETURN_IF_ERROR(ApplySharing(config, scheduler));
  SKEIN_RETURN_IF_ERROR(Choose<Order>("order", config.order, kOrders, &scheduler->order));
  SKEIN_RETURN_IF_ERROR(
      Choose<Batching>("batching", config.batching, kBatchings, &scheduler->batching));
  SKEIN_RETURN_IF_ERROR(Choose<Jct>("jct", config.jct, kJcts, &scheduler->jct));
  SKEIN_RETURN_IF_ERROR(ApplyDecodeSet(config, scheduler));
  if (config.aging >= 0 && config.aging <= kMaxAging) return Status::Ok();
  return {StatusCode::kInvalidArgument,
          fmt::format("aging is {}, must be in [0, {}]", config.aging, kMaxAging), "aging"};
}

}  // namespace

Result<MemoryChoices> MemoryChoicesOf(const EngineConfig& config) {
  SKEIN_ASSIGN_OR_RETURN(const Preset preset, PresetOf(config.preset));
  MemoryChoices choices = {preset.execution, preset.retention};
  SKEIN_RETURN_IF_ERROR(
      Choose<Execution>("execution", config.execution, kExecutions, &choices.execution));
  SKEIN_RETURN_IF_ERROR(
      Choose<Retention>("retention", config.retention, kRetentions, &choices.retention));
  SchedulerConfig scheduler{.sharing = preset.sharing};
  SKEIN_RETURN_IF_ERROR(ApplySharing(config, &scheduler));
  choices.granularity = scheduler.granularity;
  if (Preempts(scheduler.sharing) && StopsSteps(scheduler.granularity)) {
    choices.num_steps += scheduler.max_suspended_steps;
  }
  return choices;
}

int32_t UsualBatchedTokens(const EngineConfig& config, int32_t usual) {
  Result<Preset> preset = PresetOf(config.preset);
  return std::max(
      {usual, config.max_num_seqs, ChunkTokens(config, preset.ok() ? *preset : Preset{})});
}

Status CheckFlockLearns(const EngineConfig& config) {
  SKEIN_ASSIGN_OR_RETURN(const Preset preset, PresetOf(config.preset));
  SchedulerConfig scheduler{.decode_set = preset.decode_set};
  SKEIN_RETURN_IF_ERROR(ApplyDecodeSet(config, &scheduler));
  return CheckLearns(scheduler);
}

StepBounds StepBoundsOf(Retention retention, int32_t max_model_len,
                        int32_t max_num_batched_tokens) {
  if (retention == Retention::kAll) return {max_num_batched_tokens, 0};
  // One prompt of a step may exceed the remaining budget.
  return {max_model_len + max_num_batched_tokens,
          BlocksFor(max_model_len) + BlocksFor(max_num_batched_tokens) + 1};
}

Result<SchedulerConfig> MakeSchedulerConfig(const EngineConfig& config) {
  constexpr int32_t kMax = 1 << 30;
  SKEIN_RETURN_IF_ERROR(CheckRange("num_kv_blocks", config.num_kv_blocks, 1, kMax));
  SKEIN_RETURN_IF_ERROR(CheckRange("max_model_len", config.max_model_len, 2, kMax));
  SKEIN_RETURN_IF_ERROR(CheckRange("num_adapters", config.num_adapters, 1, kMax));
  SKEIN_RETURN_IF_ERROR(CheckRange("max_num_seqs", config.max_num_seqs, 1, kMaxSamples));
  // Every running sequence decodes in every step.
  SKEIN_RETURN_IF_ERROR(CheckRange("max_num_batched_tokens", config.max_num_batched_tokens,
                                   config.max_num_seqs, kMax));
  SKEIN_RETURN_IF_ERROR(CheckRange("max_prefix_wait_ms", config.max_prefix_wait_ms, 0, kMax));
  SKEIN_ASSIGN_OR_RETURN(const Preset preset, PresetOf(config.preset));
  SKEIN_ASSIGN_OR_RETURN(const int32_t step_tokens, StepTokens(config, preset));
  int32_t max_whole_prompt_len = 0;
  if (config.reads_whole_prompts) {
    const int32_t decodes =
        config.generates ? config.max_num_seqs : 0;  // in the same step, at most
    SKEIN_RETURN_IF_ERROR(
        CheckRange("max_num_batched_tokens", step_tokens, int64_t{decodes} + 1, kMax));
    max_whole_prompt_len = std::min(step_tokens - decodes, config.max_model_len);
  }
  const bool contiguous = config.kv_storage == KvStorage::kContiguous;
  if (contiguous && config.max_num_seqs != 1) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("max_num_seqs is {}, must be 1 where the KV storage is contiguous",
                              config.max_num_seqs),
                  "max_num_seqs");
  }
  SKEIN_ASSIGN_OR_RETURN(const MemoryChoices memory, MemoryChoicesOf(config));
  if (contiguous && memory.retention != Retention::kAll) {
    return Status(StatusCode::kInvalidArgument,
                  "retention must be 'all' where the KV storage is contiguous", "retention");
  }
  if (max_whole_prompt_len > 0 && memory.retention != Retention::kAll &&
      !config.force_decode_path) {
    max_whole_prompt_len = config.max_model_len;
  }
  SchedulerConfig scheduler{.sharing = preset.sharing,
                            .max_decode_wait_us = preset.max_decode_wait_us,
                            .decode_set = preset.decode_set,
                            .order = preset.order,
                            .execution = memory.execution,
                            .retention = memory.retention,
                            .batching = preset.batching,
                            .aging = config.aging,
                            .cost = config.cost,
                            .forests = preset.forests && !contiguous,
                            .max_prefix_wait_us = TimeUs{1000} * config.max_prefix_wait_ms,
                            .num_kv_blocks = config.num_kv_blocks,
                            .max_model_len = config.max_model_len,
                            .max_num_seqs = config.max_num_seqs,
                            .max_num_batched_tokens = step_tokens,
                            .num_adapters = config.num_adapters,
                            .prefix_caching = config.enable_prefix_caching && !contiguous,
                            .contiguous_kv = contiguous,
                            .max_whole_prompt_len = max_whole_prompt_len,
                            .force_decode_path = config.force_decode_path};
  SKEIN_RETURN_IF_ERROR(ApplyChoices(config, &scheduler));
  return scheduler;
}

}  // namespace skein
