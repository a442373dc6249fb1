#pragma once

#include <memory>

#include "base/result.h"
#include "server/routes.h"

namespace skein {

// Answers a request in the form of System One: a state, and an object of questions. A wrong request
// fails before anything runs; the error names the field.
Status StartSystemOne(const ServerContext& context, const HttpRequest& request,
                      std::shared_ptr<Responder> responder);

}  // namespace skein
