#pragma once

#include <string>

#include "server/http/http_message.h"
#include "server/json/json.h"
#include "skein/status.h"

namespace skein {

// Makes {"error": {"message", "type", "param", "code"}} of `status`, in the form of OpenAI's API.
Json ErrorBody(const Status& status);

// The HTTP answer to a failed request. kResourceExhausted carries Retry-After.
HttpResponse ErrorResponse(const Status& status);

// Makes the answer to an error of HTTP itself, which has no StatusCode (401, 405, 431).
HttpResponse ErrorResponse(int http_status, const std::string& message, const std::string& type,
                           const std::string& code);

// The answers while models load or the server drains.
HttpResponse LoadingResponse();
HttpResponse DrainingResponse();
HttpResponse OutOfMemoryResponse();

}  // namespace skein
