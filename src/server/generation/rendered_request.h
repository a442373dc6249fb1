#pragma once

#include <span>
#include <string>

#include "server/generation/generation_fields.h"
#include "server/json/json.h"
#include "server/model_registry.h"

namespace skein {

// A request as the routes .../render describe it, in vLLM's form: the prompt's token ids and the
// sampling parameters. Gateways choose a replica by these ids.
Json RenderedRequest(const ModelEntry& model, const GenerationFields& fields,
                     std::span<const TokenId> ids, std::string id);

}  // namespace skein
