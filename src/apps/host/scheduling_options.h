#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "skein/config.h"

namespace skein {

// The scheduling options of a command line.
struct SchedulingOptions {
  std::string preset{kDefaultPreset};
  // Instead of the preset's.
  std::optional<Order> order;
  std::optional<Batching> batching;
  std::optional<Sharing> sharing;
  std::optional<Granularity> granularity;  // unset: what the sharing says
  std::optional<DecodeSet> decode_set;
  std::optional<Execution> execution;
  std::optional<Retention> retention;
  int32_t chunk_tokens = 0;  // 0: the preset's
  // For the decode set `prefix-homogeneous` alone.
  std::optional<StopRule> stop_rule;
  std::string stop_constants;  // for SetStopConstants
  std::string stop_table;      // a file with what the stop rule learned; empty: none
  SchedulerConfig config;      // the values that no preset chooses
};

// Adds the option that names the preset, under `names`.
void AddPresetOption(CLI::App* app, const std::string& names, SchedulingOptions* options);

// Adds the options that replace choices of the preset, those that belong to them, and those of
// deadlines.
void AddChoiceOptions(CLI::App* app, SchedulingOptions* options);

// The configuration that the options ask for, without the table of the stop rule, which
// ReadStopTable (apps/sim/stop_table_writer.h) adds. Fails with kInvalidArgument, naming the
// option, where a choice has no effect beside the others or a constant cannot be read.
Result<SchedulerConfig> SchedulerConfigOf(const SchedulingOptions& options);

}  // namespace skein
