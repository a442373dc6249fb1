#pragma once

#include "apps/cli_names.h"

namespace skein {

// Adds `skein model mil`, which tells the longest input (MIL) that a memory size allows in each
// mode.
void AddModelMilCommand(CLI::App* model, int* exit_status);

}  // namespace skein
