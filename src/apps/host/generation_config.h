#pragma once

#include <string>

#include "base/result.h"
#include "model/config/config.h"
#include "server/model_registry.h"

namespace skein {

// Reads the recommended sampling from a model directory's generation_config.json: temperature,
// top_p, top_k, repetition_penalty. The ids that end an answer come from `config`, otherwise from
// the tokenizer. A missing file recommends nothing. For a malformed file, kInvalidArgument names
// the member.
Result<GenerationDefaults> LoadGenerationDefaults(const std::string& model_dir,
                                                  const ModelConfig& config,
                                                  const Tokenizer& tokenizer);

}  // namespace skein
