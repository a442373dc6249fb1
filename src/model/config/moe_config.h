#pragma once

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"

namespace skein {

// Reads the members of a mixture of experts (Qwen3MoeForCausalLM) that other decoders lack. Fails
// as LoadModelConfig does.
Status ReadMoeConfig(const JsonObject& json, ModelConfig* config);

}  // namespace skein
