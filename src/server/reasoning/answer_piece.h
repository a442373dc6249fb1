#pragma once

#include <string>
#include <vector>

#include "server/tools/call_scanner.h"

namespace skein {

// The parts of a piece of an answer's text.
struct AnswerPiece {
  std::string reasoning;
  std::string content;
  std::vector<ToolCallDelta> calls;
};

}  // namespace skein
