#pragma once

#include <string>

#include "base/result.h"
#include "model/config/config.h"
#include "server/model_registry.h"

namespace skein {

// What a model directory's generation_config.json recommends: temperature, top_p, top_k,
// repetition_penalty; the ids that end an answer come from `config`, else from the tokenizer. A
// file that is not there recommends nothing; one that is broken is kInvalidArgument, naming the
// member.
Result<GenerationDefaults> LoadGenerationDefaults(const std::string& model_dir,
                                                  const ModelConfig& config,
                                                  const Tokenizer& tokenizer);

}  // namespace skein
