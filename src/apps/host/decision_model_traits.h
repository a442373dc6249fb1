#pragma once

#include <string>

#include "base/result.h"
#include "model/config/config.h"
#include "skein/model_traits.h"

namespace skein {

// Reads the traits of a decision model: its budgets and temperatures (from rl_agent_config.json,
// config.json or head.pt) and its tokenizer's special tokens. kInvalidArgument names the file and
// what is missing in it. REQUIRES: `config` was read from the directory.
Result<DecisionModelTraits> LoadDecisionModelTraits(const std::string& model_dir,
                                                    const ModelConfig& config);

// The directory of a model's tokenizer. Laya's tokenizer has a folder of its own; those of sysone
// and Kev are with the base model. For a model that cannot be read, it is the model's own
// directory.
std::string TokenizerDirOf(const std::string& model_dir);

}  // namespace skein
