#pragma once

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"

namespace skein {

// Reads a ModernBERT config.json (or mmBERT's) into *config, in which the architecture is already
// set. Local layers and their rope are read in both spellings: `global_attn_every_n_layers` or
// `layer_types`; `global_rope_theta` and `local_rope_theta` or `rope_parameters`. Fails as
// LoadModelConfig does.
Status ReadModernBertConfig(const JsonObject& json, ModelConfig* config);

}  // namespace skein
