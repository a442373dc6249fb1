#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "base/result.h"
#include "io/gguf_model.h"

namespace skein {

// The decision model that a GGUF file of llama.cpp names (<architecture>.decision.type).
struct GgufDecision {
  enum class Family { kKev, kLaya };
  Family family = Family::kKev;
  // The contents of kKevHeadJson (model/config/kev_config.h), which stands for Kev's head.pt, or of
  // Laya's rl_agent_config.json.
  nlohmann::ordered_json config;
  // Only Laya's: members of tokenizer_config.json that name the tokens of its prompts.
  nlohmann::ordered_json tokens;
};

// nullopt: the file's model is none. kUnsupported names the type, or the template of its prompts,
// that is not known: as a language model it would answer otherwise.
Result<std::optional<GgufDecision>> ReadGgufDecision(const GgufModel& file);

}  // namespace skein
