#pragma once

#include <cstdint>

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/rope.h"

namespace skein {

// Reads `rope_theta` and `rope_scaling`, or the newer `rope_parameters`, from a config.json. A
// config without theta is kInvalidArgument. An unknown kind of scaling is kUnsupported, by name.
Result<RopeConfig> ReadRopeConfig(const JsonObject& config, int32_t max_position);

}  // namespace skein
