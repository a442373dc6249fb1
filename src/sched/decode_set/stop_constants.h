#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "skein/stop_options.h"

namespace skein {

// The constants of the stop rules as text, "max-lost=64,exploration=0.2", for the command line and
// for records.

// Sets the constants that the text names; an empty one sets nothing. Fails with kInvalidArgument,
// naming the constant and what is allowed.
Status SetStopConstants(std::string_view text, StopOptions* options);
// All constants; SetStopConstants makes the same options from the text.
std::string StopConstants(const StopOptions& options);

}  // namespace skein
