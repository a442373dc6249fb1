#pragma once

#include <CLI/CLI.hpp>

#include "skein/config.h"

namespace skein {

// Adds --order, --batching, --jct and --aging, --decode-set, --dynamic-step-ms and the options
// --flock-* but for --flock-table, which replace choices of the preset.
void AddChoiceOptions(CLI::App* app, EngineConfig* config);

}  // namespace skein
