#pragma once

#include <memory>

#include "server/router.h"

namespace skein {

// The starts of the routes /embed, /predict and /similarity of text-embeddings-inference that
// POST / shares.
Status StartTeiEmbed(const ServerContext& context, const HttpRequest& request,
                     std::shared_ptr<Responder> responder);
Status StartTeiPredict(const ServerContext& context, const HttpRequest& request,
                       std::shared_ptr<Responder> responder);
Status StartTeiSimilarity(const ServerContext& context, const HttpRequest& request,
                          std::shared_ptr<Responder> responder);

}  // namespace skein
