#include "server/routes.h"

namespace skein {

void AddRoutes(Router* router) {
  AddCompletionsRoute(router);
  AddChatCompletionsRoute(router);
  AddTokenizeRoutes(router);
  AddModelsRoutes(router);
  AddStatusRoutes(router);
  AddPageRoute(router);
}

}  // namespace skein
