#pragma once

#include <string>

#include "base/result.h"

namespace skein {

// A model's calibration: `decision_temperature` of its config.json, above 0 and at most 100; 1
// where the file does not say. kInvalidArgument names the file and the member.
Result<float> LoadDecisionTemperature(const std::string& model_dir);

}  // namespace skein
