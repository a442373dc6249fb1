#include "apps/decide/request_file.h"

#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "apps/decide/local_client.h"
#include "apps/read_file.h"

namespace skein {
namespace {

const char* NameOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
    case FinishReason::kCancelled:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kError:
      return "error";
  }
  return "error";
}

Json LineOf(const LocalAnswer& answer, size_t index) {
  Json line;
  line["index"] = index;
  line["choices"] = Json::array();
  for (size_t i = 0; i < answer.texts.size(); ++i) {
    line["choices"].push_back({{"text", answer.texts[i]},
                               {"token_ids", answer.tokens[i]},
                               {"finish_reason", NameOf(answer.finish[i])}});
  }
  line["prompt_tokens"] = answer.prompt_tokens;
  line["cached_tokens"] = answer.cached_tokens;
  return line;
}

}  // namespace

Result<Json> ReadRequestFile(const std::string& path) {
  SKEIN_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::string why;
  std::optional<Json> requests = ParseJson(text, &why);
  if (!requests.has_value()) {
    return Status(StatusCode::kInvalidArgument, path + " is not acceptable JSON: " + why);
  }
  if (!requests->is_array() || requests->empty()) {
    return Status(StatusCode::kInvalidArgument,
                  path +
                      " must hold a JSON array of requests, each with a prompt or messages and the "
                      "fields of /v1/completions");
  }
  return *std::move(requests);
}

Status AnswerRequests(const Json& requests, const Json& defaults, const ModelEntry& model) {
  LocalClient client(&model);
  for (size_t i = 0; i < requests.size(); ++i) {
    Json body = requests[i];
    if (body.is_object()) {
      for (const auto& [name, value] : defaults.items())
        if (!body.contains(name)) body[name] = value;
    }
    const Status status = client.Submit(body);
    if (!status.ok())
      return Status(status.code(), "request " + std::to_string(i) + ": " + status.message());
  }
  size_t index = 0;
  Status first_error;
  for (const LocalAnswer& answer : client.Wait()) {
    if (!answer.status.ok() && first_error.ok()) first_error = answer.status;
    std::printf("%s\n", DumpJson(LineOf(answer, index++)).c_str());
  }
  return first_error;
}

}  // namespace skein
