#include "server/json/api_error.h"

namespace skein {
namespace {

constexpr char kRetryAfterSeconds[] = "1";

struct ErrorKind {
  int http_status;
  const char* type;
  const char* code;  // null: none
};

ErrorKind KindOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
    case StatusCode::kInternal:
      return {500, "server_error", "internal_error"};
    case StatusCode::kInvalidArgument:
      return {400, "invalid_request_error", "invalid_value"};
    case StatusCode::kUnsupported:
      return {400, "invalid_request_error", "unsupported_value"};
    case StatusCode::kNotFound:
      return {404, "invalid_request_error",
              status.param() == "model" ? "model_not_found" : "not_found"};
    case StatusCode::kTooLarge:
      return {413, "invalid_request_error", "request_too_large"};
    case StatusCode::kResourceExhausted:
      return {429, "rate_limit_error", "queue_full"};
    case StatusCode::kUnavailable:
      return {503, "unavailable_error", "unavailable"};
  }
  return {500, "server_error", "internal_error"};
}

Json Body(const std::string& message, const std::string& type, const Json& param,
          const Json& code) {
  Json error;
  error["message"] = message;
  error["type"] = type;
  error["param"] = param;
  error["code"] = code;
  Json body;
  body["error"] = std::move(error);
  return body;
}

HttpResponse UnavailableResponse(const char* message) {
  HttpResponse response;
  response.status = 503;
  response.body = DumpJson(Body(message, "unavailable_error", nullptr, 503));
  response.headers.emplace_back("Retry-After", kRetryAfterSeconds);
  return response;
}

}  // namespace

Json ErrorBody(const Status& status) {
  const ErrorKind kind = KindOf(status);
  return Body(status.message(), kind.type,
              status.param().empty() ? Json(nullptr) : Json(status.param()), kind.code);
}

HttpResponse ErrorResponse(const Status& status) {
  HttpResponse response;
  response.status = KindOf(status).http_status;
  response.body = DumpJson(ErrorBody(status));
  if (response.status == 429 || response.status == 503) {
    response.headers.emplace_back("Retry-After", status.retry_after_s() > 0
                                                     ? std::to_string(status.retry_after_s())
                                                     : kRetryAfterSeconds);
  }
  return response;
}

HttpResponse ErrorResponse(int http_status, const std::string& message, const std::string& type,
                           const std::string& code) {
  HttpResponse response;
  response.status = http_status;
  response.body = DumpJson(Body(message, type, nullptr, code));
  return response;
}

HttpResponse LoadingResponse() { return UnavailableResponse("Loading model"); }
HttpResponse DrainingResponse() { return UnavailableResponse("The server is shutting down"); }
HttpResponse OutOfMemoryResponse() { return UnavailableResponse("The server is out of memory"); }

}  // namespace skein
