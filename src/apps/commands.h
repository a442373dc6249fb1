#pragma once

#include <CLI/CLI.hpp>

namespace skein {

// Each adds one subcommand to `app`; when that is chosen, its callback stores the program's exit
// status: 0, 1 for a failure, 2 for options that do not fit together. Options come from the command
// line, else from the file of --config (a section per command), else, where the command says so,
// from SKEIN_* environment variables.

void AddBenchCommand(CLI::App* app, int* exit_status);
void AddDecideCommand(CLI::App* app, int* exit_status);
void AddModelCommand(CLI::App* app, int* exit_status);
void AddPolicyCommand(CLI::App* app, int* exit_status);
void AddRunCommand(CLI::App* app, int* exit_status);
void AddSimCommand(CLI::App* app, int* exit_status);
void AddServeCommand(CLI::App* app, int* exit_status);
void AddTokenizeCommand(CLI::App* app, int* exit_status);

// Gives every option that `command` has by now its environment variable (EnvironmentName).
void NameEnvironment(CLI::App* command);

}  // namespace skein
