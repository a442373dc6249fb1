#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace skein {

struct ProgramOptions {
  // The program, which is searched for on PATH, and its arguments.
  std::vector<std::string> arguments;
  std::string log;           // the file for standard error; it is replaced
  bool show_output = false;  // standard output goes to our standard error; otherwise it is dropped
};

// Runs a program and waits for its end. kUnavailable if it cannot be started or fails; the message
// is the last line of its standard error, otherwise how it ended.
Status RunProgram(const ProgramOptions& options);

}  // namespace skein
