#pragma once

#include <string>

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"

namespace skein {

// Reads a ModernBERT config.json (mmBERT's, too) into *config, which already has the architecture.
// Local layers and their rope are read in both spellings: `global_attn_every_n_layers` or
// `layer_types`; `global_rope_theta` and `local_rope_theta` or `rope_parameters`. Fails as
// LoadModelConfig does.
Status ReadModernBertConfig(const JsonObject& json, ModelConfig* config);

// Sets tensor_prefix to the one that the files in `model_dir` have. Without files, or without the
// embedding among them, it stays as the architecture has it.
Status FindTensorPrefix(const std::string& model_dir, ModelConfig* config);

}  // namespace skein
