#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "skein/config.h"

namespace skein {

// Adds the option that names a preset (include/skein/presets.h).
void AddPresetOption(CLI::App* app, const std::string& names, std::string* preset);

// Adds the options that replace choices of the preset: --execution, --retention, --order,
// --batching, --sharing, --jct, --chunk-tokens, --decode-set, those that belong to them, and those
// of deadlines.
void AddChoiceOptions(CLI::App* app, EngineConfig* config);

// Adds the options of the decode set `flock`; `table` is the file of --flock-table.
void AddFlockOptions(CLI::App* app, EngineConfig* config, std::string* table);

}  // namespace skein
