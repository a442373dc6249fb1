#pragma once

#include <string>
#include <string_view>

#include "skein/policies.h"

namespace skein {

// A named combination of policies, published or our own (docs/scheduling.md).
struct Preset {
  std::string_view name;
  Policies policies;
};

inline constexpr Preset kPresets[] = {
    {"auto",
     {.order = Order::kAuto,
      .batching = Batching::kAuto,
      .sharing = Sharing::kPreemptOp,
      .decode_set = DecodeSet::kPrefixHomogeneous,
      .forests = true}},
    {"prelude", {.order = Order::kFair, .forests = true}},
    {"chunked-fcfs", {}},
    {"paged-fcfs", {.sharing = Sharing::kWhole}},
    {"request-level", {.sharing = Sharing::kWhole, .decode_set = DecodeSet::kStatic}},
    {"prefill-only",
     {.order = Order::kSrjfCalibrated,
      .batching = Batching::kSaturate,
      .sharing = Sharing::kWhole,
      .execution = Execution::kHybrid,
      .retention = Retention::kPrefix,
      .max_decode_wait_us = 1'000'000}},
    {"feather", {.decode_set = DecodeSet::kPrefixHomogeneous}},
    {"sglang-lpm", {.order = Order::kLpm}},
    {"sglang-dfs-weight", {.order = Order::kDfsWeight}},
    {"distserve-cp2k", {.order = Order::kEdf, .chunk_tokens = 2048}},
    {"distserve-cp8k", {.order = Order::kEdf, .chunk_tokens = 8192}},
    {"layer-level",
     {.order = Order::kSlackEdf,
      .batching = Batching::kSloAware,
      .sharing = Sharing::kPreemptLayer,
      .granularity = Granularity::kLayer}},
    {"flow-prefill",
     {.order = Order::kSlackEdf, .batching = Batching::kSloAware, .sharing = Sharing::kPreemptOp}},
};

// Another name of a preset.
struct PresetAlias {
  std::string_view name, preset;
};
inline constexpr PresetAlias kPresetAliases[] = {
    {"vllm-fcfs", "chunked-fcfs"},
    {"nano-vllm", "chunked-fcfs"},
    {"distserve", "paged-fcfs"},
};

// The preset of a configuration that names no preset.
inline constexpr std::string_view kDefaultPreset = kPresets[0].name;

// Returns null if no preset has this name.
constexpr const Preset* FindPreset(std::string_view name) {
  for (const PresetAlias& alias : kPresetAliases) {
    if (alias.name == name) name = alias.preset;
  }
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

// Returns "prelude, chunked-fcfs (vllm-fcfs, nano-vllm), ...".
inline std::string ListOfPresets() {
  std::string list;
  for (const Preset& preset : kPresets) {
    list += (list.empty() ? "" : ", ") + std::string(preset.name);
    std::string aliases;
    for (const PresetAlias& alias : kPresetAliases) {
      if (alias.preset == preset.name) {
        aliases += (aliases.empty() ? "" : ", ") + std::string(alias.name);
      }
    }
    if (!aliases.empty()) list += " (" + aliases + ")";
  }
  return list;
}

}  // namespace skein
