#pragma once

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"

namespace skein {

// Reads the members in which gpt-oss differs from other decoders: experts with biases in every
// layer, attention sinks, and the limits of its activation. Fails as LoadModelConfig does.
Status ReadGptOss(const JsonObject& json, ModelConfig* config);

}  // namespace skein
