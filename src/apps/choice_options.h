#pragma once

#include <CLI/CLI.hpp>

#include "skein/config.h"

namespace skein {

// Adds --execution, --retention, --order, --batching, --sharing, --jct and those that belong to
// them, which replace choices of the preset.
void AddChoiceOptions(CLI::App* app, EngineConfig* config);

}  // namespace skein
