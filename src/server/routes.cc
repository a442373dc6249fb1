#include "server/routes.h"

namespace skein {

void AddRoutes(Router* router) {
  AddCompletionsRoute(router);
  AddChatCompletionsRoute(router);
  AddEmbeddingsRoutes(router);
  AddTeiRoutes(router);
  AddTokenizeRoutes(router);
  AddModelsRoutes(router);
  AddStatusRoutes(router);
}

}  // namespace skein
