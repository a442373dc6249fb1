#pragma once

#include <string>

#include "base/result.h"
#include "skein/model_traits.h"

namespace skein {

// The traits of a Laya or a sysone model: its budgets and temperatures (rl_agent_config.json, or
// config.json) and its tokenizer's special tokens. kInvalidArgument names the file and what it
// lacks.
Result<DecisionModelTraits> LoadDecisionModelTraits(const std::string& model_dir);

// The directory of a model's tokenizer: Laya's is in a folder of its own, sysone's with the base
// model. A model that cannot be read has its own directory.
std::string TokenizerDirOf(const std::string& model_dir);

}  // namespace skein
