#pragma once

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"

namespace skein {

// Sets what gpt-oss has besides a mixture of experts: biases, attention sinks, and an activation
// whose constants are checked. Fails as LoadModelConfig does.
Status ReadGptOss(const JsonObject& json, ModelConfig* config);

}  // namespace skein
