#pragma once

#include "server/model_registry.h"
#include "server/router.h"
#include "skein/request.h"
#include "skein/status.h"

namespace skein {

// The check of a request's wait before its prompt is made, so that a refusal costs neither
// rendering nor encoding. The wait depends on the request's class, its scheduling fields and the
// queue, hardly on its prompt. Handlers call one of these functions once they have checked what
// needs no tokenizer. Both fail with kResourceExhausted, as Engine::Submit would; it checks again.

// For a request that generates. `request` has all but its prompt.
Status CheckGenerationWait(const ServerContext& context, const ModelEntry& model,
                           const Request& request);

// For requests that read their prompts and generate nothing. `base` has their scheduling fields.
Status CheckReadWait(const ModelEntry& model, const Request& base);

}  // namespace skein
