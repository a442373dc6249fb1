#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/cli_names.h"
#include "base/result.h"
#include "skein/config.h"

namespace skein {

// The scheduling options of a command line.
struct SchedulingOptions {
  std::string preset{kDefaultPreset};
  // These replace the choices of the preset.
  std::optional<Order> order;
  std::optional<Batching> batching;
  std::optional<Sharing> sharing;
  std::optional<Granularity> granularity;  // unset: follows from the sharing
  std::optional<DecodeSet> decode_set;
  std::optional<Execution> execution;
  std::optional<Retention> retention;
  int32_t chunk_tokens = 0;  // 0: that of the preset
  // Only for the decode set `prefix-homogeneous`.
  std::optional<StopRule> stop_rule;
  std::string stop_constants;  // passed to SetStopConstants
  std::string stop_table;      // a file with the table that the stop rule learned; empty: none
  SchedulerConfig config;      // values that presets do not choose
};

// Adds the option that names the preset. `names` are the option's names.
void AddPresetOption(CLI::App* app, const std::string& names, SchedulingOptions* options);

// Adds the options that replace choices of the preset, the options that belong to these choices,
// and those of deadlines.
void AddChoiceOptions(CLI::App* app, SchedulingOptions* options);

// The configuration that the options ask for. The table of the stop rule is not part of it;
// ReadStopTable (apps/sim/stop_table_writer.h) adds it. kInvalidArgument, naming the option, if a
// choice has no effect together with the others or a constant cannot be parsed.
Result<SchedulerConfig> SchedulerConfigOf(const SchedulingOptions& options);

}  // namespace skein
