#pragma once

#include <CLI/CLI.hpp>

#include "skein/config.h"

namespace skein {

// Adds --order, --batching, --sharing, --jct, --decode-set, --flock-* (but for --flock-table) and
// those that belong to them, which replace choices of the preset.
void AddChoiceOptions(CLI::App* app, EngineConfig* config);

}  // namespace skein
