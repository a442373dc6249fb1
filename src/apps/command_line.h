#pragma once

#include <memory>
#include <span>
#include <string>

#include "apps/cli_names.h"

namespace skein {

// The command line of `skein` with every command. Parsing it runs the command that it names; the
// command stores the program's exit status.
std::unique_ptr<CLI::App> MakeCommandLine(int* exit_status);

// Runs the command that the arguments of the program name and returns the program's exit status.
int RunCommandLine(int argc, char** argv);

// A message about the first argument that should name a command and names none; empty if all do.
std::string MisspelledCommand(const CLI::App& app, std::span<const std::string> arguments);

// SKEIN_ and the name of the option: SKEIN_MAX_NUM_SEQS of --max-num-seqs.
std::string EnvironmentName(const CLI::Option& option);

}  // namespace skein
