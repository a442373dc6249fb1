#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "skein/stop_options.h"

namespace skein {

// The constants of the stop rules as text, for the command line and for records:
// "max-lost=64,exploration=0.2".

// Sets the constants that the text names; an empty text sets nothing. Fails with kInvalidArgument,
// naming the constant and the allowed values.
Status SetStopConstants(std::string_view text, StopOptions* options);
// Writes all constants as text. SetStopConstants makes the same options from this text.
std::string StopConstants(const StopOptions& options);

}  // namespace skein
