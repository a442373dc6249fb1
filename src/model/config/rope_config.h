#pragma once

#include <cstdint>

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/rope.h"

namespace skein {

// The rules of a family of models for its rope.
struct RopeRules {
  double theta = 0;         // where `rope_theta` is absent; 0: that is an error
  int32_t head_dim = 0;     // with `partial_rotary_factor` and longrope (Phi-3); 0: without
  double rotated_part = 1;  // where `partial_rotary_factor` is absent
};

// Reads `rope_theta` and `rope_scaling`, or the newer `rope_parameters`, from a config.json. An
// unknown kind of scaling is kUnsupported, by name.
Result<RopeConfig> ReadRopeConfig(const JsonObject& config, int32_t max_position,
                                  const RopeRules& rules = {});

// Reads one object of `rope_parameters`, which holds its own `rope_theta`. Fails alike.
Result<RopeConfig> ReadRopeParameters(const JsonObject& parameters, int32_t max_position);

// Reads the theta at `key` of a rope without scaling.
Result<RopeConfig> ReadPlainRope(const JsonObject& config, const char* key);

}  // namespace skein
