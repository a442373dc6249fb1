#pragma once

#include "apps/cli_names.h"

namespace skein {

// Each function adds one subcommand to `app`. If the subcommand is chosen, its callback stores the
// program's exit status: 0, 1 for a failure, 2 for options that do not fit together. The value of
// an option comes from the command line, otherwise from the file of --config (a section per
// command), otherwise, for commands that say so, from a SKEIN_* environment variable.

void AddBenchCommand(CLI::App* app, int* exit_status);
void AddDecideCommand(CLI::App* app, int* exit_status);
void AddModelCommand(CLI::App* app, int* exit_status);
void AddPolicyCommand(CLI::App* app, int* exit_status);
void AddRunCommand(CLI::App* app, int* exit_status);
void AddSimCommand(CLI::App* app, int* exit_status);
void AddServeCommand(CLI::App* app, int* exit_status);
void AddTokenizeCommand(CLI::App* app, int* exit_status);

// Gives each option that `command` has so far its environment variable (EnvironmentName).
void NameEnvironment(CLI::App* command);

}  // namespace skein
