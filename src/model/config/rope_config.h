#pragma once

#include <cstdint>

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/rope.h"

namespace skein {

// Reads `rope_theta` and `rope_scaling`, or the newer `rope_parameters`, from a config.json. A
// config that states no theta is kInvalidArgument, a kind of scaling that is not implemented
// kUnsupported, by name.
Result<RopeConfig> ReadRopeConfig(const JsonObject& config, int32_t max_position);

}  // namespace skein
