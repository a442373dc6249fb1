#pragma once

#include <string>

#include "base/result.h"
#include "model/config/config.h"
#include "skein/model_traits.h"

namespace skein {

// The traits of a decision model: its budgets and temperatures (rl_agent_config.json, config.json
// or head.pt) and its tokenizer's special tokens. kInvalidArgument names the file and what it
// lacks. REQUIRES: `config` is the directory's.
Result<DecisionModelTraits> LoadDecisionModelTraits(const std::string& model_dir,
                                                    const ModelConfig& config);

// The directory of a model's tokenizer: Laya's is in a folder of its own, those of sysone and Kev
// with the base model. A model that cannot be read has its own directory.
std::string TokenizerDirOf(const std::string& model_dir);

}  // namespace skein
