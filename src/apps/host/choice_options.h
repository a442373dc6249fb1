#pragma once

#include <CLI/CLI.hpp>

#include "skein/config.h"

namespace skein {

// Adds --execution, --retention, --order, --batching, --sharing, --jct, --chunk-tokens,
// --decode-set, --flock-* (but for --flock-table), those that belong to them and what concerns
// deadlines, which replace choices of the preset.
void AddChoiceOptions(CLI::App* app, EngineConfig* config);

}  // namespace skein
