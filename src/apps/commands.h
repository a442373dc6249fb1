#pragma once

#include <CLI/CLI.hpp>

namespace skein {

// Each adds one subcommand to `app`; when that is chosen, its callback stores the program's exit
// status. Options come from the command line, else from SKEIN_* environment variables, else from
// --config FILE.

void AddModelCommand(CLI::App* app, int* exit_status);
void AddTokenizeCommand(CLI::App* app, int* exit_status);

}  // namespace skein
