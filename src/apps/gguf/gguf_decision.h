#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "base/result.h"
#include "io/gguf_model.h"

namespace skein {

// The decision model that a GGUF file of llama.cpp names (<architecture>.decision.type): of Kev the
// contents of kKevHeadJson (model/config/kev_config.h), which stands for its head.pt. nullopt: the
// file's model is none. kUnsupported names the type, or the template of its prompts, that is not
// known: as a language model it would answer otherwise.
Result<std::optional<nlohmann::ordered_json>> ReadGgufDecision(const GgufModel& file);

}  // namespace skein
