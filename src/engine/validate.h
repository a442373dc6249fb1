#pragma once

#include "skein/engine.h"
#include "skein/request.h"

namespace skein {

// Returns ok if every member of the request is in its range (see skein/request.h) and within the
// limits, and if the model can give the output (else kUnsupported). Fails with kInvalidArgument;
// the message names the field in the API's spelling, its value and the allowed values. NaN is
// refused everywhere. Scheduler::CheckFits checks the bounds that depend on lengths and memory.
Status ValidateRequest(const EngineLimits& limits, const Request& request);

}  // namespace skein
