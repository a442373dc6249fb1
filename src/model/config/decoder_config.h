#pragma once

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"

namespace skein {

// Reads a decoder's config.json into *config, in which the architecture and the head are already
// set. Fails as LoadModelConfig does.
Status ReadDecoderConfig(const JsonObject& json, ModelConfig* config);

}  // namespace skein
