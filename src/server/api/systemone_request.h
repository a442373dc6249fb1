#pragma once

#include <memory>

#include "base/result.h"
#include "server/routes.h"

namespace skein {

// Answers a request in the form of System One: a state, and an object of questions. Fails before
// anything runs, with the field's name, if the request is wrong.
Status StartSystemOne(const ServerContext& context, const HttpRequest& request,
                      std::shared_ptr<Responder> responder);

}  // namespace skein
