#pragma once

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"

namespace skein {

// Reads what the config.json of a mixture of experts (Qwen3MoeForCausalLM) says beside what it has
// in common with other decoders. Fails as LoadModelConfig does.
Status ReadMoeConfig(const JsonObject& json, ModelConfig* config);

}  // namespace skein
