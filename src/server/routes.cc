#include "server/routes.h"

namespace skein {

void AddRoutes(Router* router) {
  AddCompletionsRoute(router);
  AddChatCompletionsRoute(router);
  AddAnthropicRoutes(router);
  AddOllamaRoutes(router);
  AddHuggingFaceRoutes(router);
  AddResponsesRoute(router);
  AddEmbeddingsRoutes(router);
  AddTeiRoutes(router);
  AddBatchRoutes(router);
  AddDecisionsRoute(router);
  AddSystemOneRoute(router);
  AddScoreRoutes(router);
  AddRerankRoutes(router);
  AddTokenizeRoutes(router);
  AddModelsRoutes(router);
  AddStatusRoutes(router);
  AddSchedulerRoute(router);
  AddPageRoute(router);
}

}  // namespace skein
