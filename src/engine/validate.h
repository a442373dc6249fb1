#pragma once

#include "skein/engine.h"
#include "skein/request.h"

namespace skein {

// Ok if every member of the request is in its range (see skein/request.h) and below the limits, and
// the model has the output (else kUnsupported). Fails with kInvalidArgument; the message names the
// field in the API's spelling, its value and what is allowed. NaN is refused everywhere.
// Scheduler::CheckFits checks the bounds that depend on lengths and memory.
Status ValidateRequest(const EngineLimits& limits, const Request& request);

}  // namespace skein
