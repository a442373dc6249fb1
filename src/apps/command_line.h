#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace skein {

// The command line of `skein` with every command. Parsing it runs the command that it names; the
// command stores the program's exit status.
std::unique_ptr<CLI::App> MakeCommandLine(int* exit_status);

// The name of the option's environment variable: SKEIN_MAX_NUM_SEQS for --max-num-seqs.
std::string EnvironmentName(const CLI::Option& option);

}  // namespace skein
