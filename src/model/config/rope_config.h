#pragma once

#include <cstdint>

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/rope.h"

namespace skein {

// The rules for rope in a family of models.
struct RopeRules {
  double theta = 0;         // if `rope_theta` is absent; 0: an error then
  int32_t head_dim = 0;     // allows `partial_rotary_factor` and longrope (Phi-3); 0: neither
  double rotated_part = 1;  // if `partial_rotary_factor` is absent
};

// Reads `rope_theta` and `rope_scaling`, or the newer `rope_parameters`, from a config.json. Fails
// with kUnsupported, naming it, for an unknown kind of scaling.
Result<RopeConfig> ReadRopeConfig(const JsonObject& config, int32_t max_position,
                                  const RopeRules& rules = {});

// Reads one object of `rope_parameters`, which contains its own `rope_theta`. Fails as
// ReadRopeConfig does.
Result<RopeConfig> ReadRopeParameters(const JsonObject& parameters, int32_t max_position);

// Reads a rope without scaling, whose theta is at `key`.
Result<RopeConfig> ReadPlainRope(const JsonObject& config, const char* key);

}  // namespace skein
