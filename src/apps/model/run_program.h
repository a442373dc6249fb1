#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace skein {

struct ProgramOptions {
  std::vector<std::string> arguments;  // the program, sought on PATH, and what it gets
  std::string log;                     // a file for standard error, replaced
  bool show_output = false;            // standard output goes to ours of errors; else nowhere
};

// Runs a program to its end. kUnavailable if it cannot be started or fails: the message is the last
// line of its standard error, or else how it ended.
Status RunProgram(const ProgramOptions& options);

}  // namespace skein
