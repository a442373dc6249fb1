#pragma once

#include <CLI/CLI.hpp>

namespace skein {

// Adds `skein model mil`: how long an input a memory allows, by mode.
void AddModelMilCommand(CLI::App* model, int* exit_status);

}  // namespace skein
