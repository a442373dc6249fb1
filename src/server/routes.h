#pragma once

#include "server/router.h"

namespace skein {

// Every route of the server (docs: api.md's names): one file of handlers each.
void AddRoutes(Router* router);

void AddCompletionsRoute(Router* router);      // /v1/completions
void AddChatCompletionsRoute(Router* router);  // /v1/chat/completions
void AddTokenizeRoutes(Router* router);        // /tokenize, /detokenize
void AddModelsRoutes(Router* router);          // /v1/models, /v1/models/{id}
void AddStatusRoutes(Router* router);          // /health, /ping, /version, /metrics
void AddPageRoute(Router* router);             // /

}  // namespace skein
