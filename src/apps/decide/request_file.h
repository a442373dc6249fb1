#pragma once

#include <string>

#include "base/result.h"
#include "server/json/json.h"
#include "server/model_registry.h"

namespace skein {

// The requests of a file, which must be a JSON array and not empty. Errors name the file.
Result<Json> ReadRequestFile(const std::string& path);

// Answers the requests together: one line of JSON on standard output for each, in order. `defaults`
// are members of each request that lacks them. Fails if a request is refused, naming its index, or
// with the first answer's error.
Status AnswerRequests(const Json& requests, const Json& defaults, const ModelEntry& model);

}  // namespace skein
