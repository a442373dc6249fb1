#pragma once

#include <string>

#include "server/http/http_message.h"
#include "server/json/json.h"
#include "skein/status.h"

namespace skein {

// {"error": {"message", "type", "param", "code"}} of `status`, as OpenAI's clients read it.
Json ErrorBody(const Status& status);

// The HTTP answer to a failed request. kResourceExhausted carries Retry-After.
HttpResponse ErrorResponse(const Status& status);

// For refusals of HTTP itself, which no StatusCode stands for (401, 405, 431).
HttpResponse ErrorResponse(int http_status, const std::string& message, const std::string& type,
                           const std::string& code);

// What is answered while models load or the server drains.
HttpResponse LoadingResponse();
HttpResponse DrainingResponse();

}  // namespace skein
