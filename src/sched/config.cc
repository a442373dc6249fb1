#include "sched/config.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "sched/plan.h"

namespace skein {
namespace {

struct Preset {
  std::string_view name;
  Sharing sharing;
  DecodeSet decode_set;
  Order order = Order::kFcfs;
  bool forests = false;
};

constexpr std::array<Preset, 6> kPresets = {{
    {"prelude", Sharing::kChunked, DecodeSet::kFill, Order::kFair, true},
    {"vllm-fcfs", Sharing::kChunked, DecodeSet::kFill},
    {"chunked-fcfs", Sharing::kChunked, DecodeSet::kFill},
    {"paged-fcfs", Sharing::kWhole, DecodeSet::kFill},
    {"nano-vllm", Sharing::kChunked, DecodeSet::kFill},
    {"request-level", Sharing::kWhole, DecodeSet::kStatic},
}};

Status CheckRange(const char* name, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return Status::Ok();
  return {StatusCode::kInvalidArgument,
          fmt::format("{} is {}, must be in [{}, {}]", name, value, low, high), name};
}

}  // namespace

Result<SchedulerConfig> MakeSchedulerConfig(const EngineConfig& config) {
  constexpr int32_t kMax = 1 << 30;
  SKEIN_RETURN_IF_ERROR(CheckRange("num_kv_blocks", config.num_kv_blocks, 1, kMax));
  SKEIN_RETURN_IF_ERROR(CheckRange("max_model_len", config.max_model_len, 2, kMax));
  SKEIN_RETURN_IF_ERROR(CheckRange("max_num_seqs", config.max_num_seqs, 1, kMaxSamples));
  // Every running sequence decodes in every step.
  SKEIN_RETURN_IF_ERROR(CheckRange("max_num_batched_tokens", config.max_num_batched_tokens,
                                   config.max_num_seqs, kMax));
  SKEIN_RETURN_IF_ERROR(CheckRange("max_prefix_wait_ms", config.max_prefix_wait_ms, 0, kMax));
  int32_t max_whole_prompt_len = 0;
  if (config.reads_whole_prompts) {
    const int32_t decodes =
        config.generates ? config.max_num_seqs : 0;  // in the same step, at most
    SKEIN_RETURN_IF_ERROR(CheckRange("max_num_batched_tokens", config.max_num_batched_tokens,
                                     int64_t{decodes} + 1, kMax));
    max_whole_prompt_len = std::min(config.max_num_batched_tokens - decodes, config.max_model_len);
  }
  const bool contiguous = config.kv_storage == KvStorage::kContiguous;
  if (contiguous && config.max_num_seqs != 1) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("max_num_seqs is {}, must be 1 where the KV storage is contiguous",
                              config.max_num_seqs),
                  "max_num_seqs");
  }
  for (const Preset& preset : kPresets) {
    if (preset.name != config.preset) continue;
    return SchedulerConfig{.sharing = preset.sharing,
                           .decode_set = preset.decode_set,
                           .order = preset.order,
                           .forests = preset.forests && !contiguous,
                           .max_prefix_wait_us = TimeUs{1000} * config.max_prefix_wait_ms,
                           .num_kv_blocks = config.num_kv_blocks,
                           .max_model_len = config.max_model_len,
                           .max_num_seqs = config.max_num_seqs,
                           .max_num_batched_tokens = config.max_num_batched_tokens,
                           .prefix_caching = config.enable_prefix_caching && !contiguous,
                           .contiguous_kv = contiguous,
                           .max_whole_prompt_len = max_whole_prompt_len,
                           .force_decode_path = config.force_decode_path};
  }
  std::string known;
  for (const Preset& preset : kPresets) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", preset.name);
  }
  return Status(StatusCode::kInvalidArgument,
                fmt::format("preset is '{}', must be one of: {}", config.preset, known), "preset");
}

}  // namespace skein
