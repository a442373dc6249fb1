#pragma once

#include "server/router.h"

namespace skein {

// Adds every route of the server. The functions below each add the routes of one file of handlers.
void AddRoutes(Router* router);

void AddCompletionsRoute(Router* router);      // /v1/completions, /v1/completions/render
void AddChatCompletionsRoute(Router* router);  // /v1/chat/completions, .../render
void AddAnthropicRoutes(Router* router);       // /v1/messages, /v1/messages/count_tokens
void AddHuggingFaceRoutes(Router* router);     // POST /, /info, /server_info, ...
void AddOllamaRoutes(Router* router);          // /api/...
void AddResponsesRoute(Router* router);        // /v1/responses
void AddEmbeddingsRoutes(Router* router);      // /v1/embeddings, /pooling, /classify
void AddTeiRoutes(Router* router);             // /embed, /embed_all, /predict, /similarity
void AddBatchRoutes(Router* router);           // /v1/files, /v1/batches
void AddDecisionsRoute(Router* router);        // /v1/decisions
void AddSystemOneRoute(Router* router);        // /v1/systemone, /api/alpha/decisions
void AddScoreRoutes(Router* router);           // /v1/score, /score, /generative_scoring
void AddRerankRoutes(Router* router);          // /rerank, /v1/rerank, /v2/rerank
void AddTokenizeRoutes(Router* router);        // /tokenize, /detokenize
void AddModelsRoutes(Router* router);          // /v1/models, /v1/models/{id}
void AddStatusRoutes(Router* router);          // /health, /ping, /version, /metrics
void AddSchedulerRoute(Router* router);        // /scheduler
void AddPageRoute(Router* router);             // /

}  // namespace skein
