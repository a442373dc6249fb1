#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace skein {

// The command line of `skein` with every command. Parsing it runs the command that is named, which
// stores the program's exit status.
std::unique_ptr<CLI::App> MakeCommandLine(int* exit_status);

// SKEIN_ and the name of the option: SKEIN_MAX_NUM_SEQS of --max-num-seqs.
std::string EnvironmentName(const CLI::Option& option);

}  // namespace skein
