#pragma once

#include "io/json_file.h"
#include "model/config/config.h"

namespace skein {

// Reads the members of a DeBERTa v2 or v3 config. Fails as LoadModelConfig does.
Status ReadDebertaConfig(const JsonObject& json, ModelConfig* config);

}  // namespace skein
