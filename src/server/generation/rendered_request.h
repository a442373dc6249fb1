#pragma once

#include <span>
#include <string>

#include "server/generation/generation_fields.h"
#include "server/json/json.h"
#include "server/model_registry.h"

namespace skein {

// A request as the routes .../render tell of it, in vLLM's form: the prompt's token ids and how the
// answer would be sampled. Gateways choose a replica by these ids.
Json RenderedRequest(const ModelEntry& model, const GenerationFields& fields,
                     std::span<const TokenId> ids, std::string id);

}  // namespace skein
