#pragma once

#include <string>

#include "base/result.h"
#include "server/json/json.h"
#include "server/model_registry.h"

namespace skein {

// Reads the requests of a file, which must hold a JSON array that is not empty. Errors name the
// file.
Result<Json> ReadRequestFile(const std::string& path);

// Answers the requests together, and writes one line of JSON per request to standard output, in
// order. `defaults` are members for requests that lack them. Fails if a request is refused (the
// error names its index), or with the first error among the answers.
Status AnswerRequests(const Json& requests, const Json& defaults, const ModelEntry& model);

}  // namespace skein
