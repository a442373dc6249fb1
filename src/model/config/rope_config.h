#pragma once

#include <cstdint>

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/rope.h"

namespace skein {

// Reads `rope_theta` and `rope_scaling`, or the newer `rope_parameters`, from a config.json. A
// config without theta has `default_theta`, or is kInvalidArgument if that is 0. An unknown kind of
// scaling is kUnsupported, by name.
Result<RopeConfig> ReadRopeConfig(const JsonObject& config, int32_t max_position,
                                  double default_theta = 0);

// Reads one object of `rope_parameters`, which holds its own `rope_theta`. Fails alike.
Result<RopeConfig> ReadRopeParameters(const JsonObject& parameters, int32_t max_position);

// Reads the theta at `key` of a rope without scaling.
Result<RopeConfig> ReadPlainRope(const JsonObject& config, const char* key);

}  // namespace skein
