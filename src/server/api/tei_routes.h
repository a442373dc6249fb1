#pragma once

#include <memory>

#include "server/router.h"

namespace skein {

// Handlers of /embed, /predict and /similarity of text-embeddings-inference, which POST / calls,
// too.
Status StartTeiEmbed(const ServerContext& context, const HttpRequest& request,
                     std::shared_ptr<Responder> responder);
Status StartTeiPredict(const ServerContext& context, const HttpRequest& request,
                       std::shared_ptr<Responder> responder);
Status StartTeiSimilarity(const ServerContext& context, const HttpRequest& request,
                          std::shared_ptr<Responder> responder);

}  // namespace skein
