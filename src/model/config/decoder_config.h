#pragma once

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"

namespace skein {

// Reads a decoder's config.json into *config, which already has the architecture and the head.
// Fails as LoadModelConfig does.
Status ReadDecoderConfig(const JsonObject& json, ModelConfig* config);

}  // namespace skein
