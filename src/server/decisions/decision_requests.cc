#include "server/decisions/decision_requests.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "server/prompt_text.h"

namespace skein {

Status Within(const std::string& path, const Status& status) {
  if (status.ok()) return status;
  return Status(status.code(), fmt::format("{}.{}", path, status.message()),
                status.param().empty() ? path : fmt::format("{}.{}", path, status.param()));
}

Status CheckReadsLabels(const ModelEntry& model) {
  if (model.traits.generates) return Status::Ok();
  return Status(StatusCode::kUnsupported,
                fmt::format("the model {} has no output matrix to read answers from: name a causal "
                            "language model",
                            model.name()),
                "model");
}

size_t MaxLabelTokens(const ModelEntry& model) {
  return static_cast<size_t>(std::max(1, model.max_model_len - 1));
}

Status CheckPromptLength(size_t tokens_max, size_t num_tokens, const std::string& field,
                         const std::string& what) {
  if (num_tokens == 0) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} must have at least one token", what), field);
  }
  if (num_tokens <= tokens_max) return Status::Ok();
  return Status(StatusCode::kInvalidArgument,
                fmt::format("the prompt of {} has {} tokens, but this model takes at most {}: "
                            "shorten it",
                            what, num_tokens, tokens_max),
                field);
}

Result<Request> MakeRead(const ModelEntry& model, const Request& base, std::string_view text,
                         bool add_special_tokens, const std::string& field,
                         const std::string& what) {
  Request request = base;
  const Status encoded =
      EncodePrompt(model, text, add_special_tokens, MaxLabelTokens(model), &request.prompt);
  if (!encoded.ok()) {
    return Status(encoded.code(), fmt::format("{}: {}", what, encoded.message()), field);
  }
  SKEIN_RETURN_IF_ERROR(
      CheckPromptLength(MaxLabelTokens(model), request.prompt.size(), field, what));
  return request;
}

void SetSharedHead(size_t num_own_tokens, std::vector<Request>* requests) {
  const std::vector<TokenId>& first = requests->front().prompt;
  // At least the last token of every prompt is not shared.
  size_t shared = first.size() - 1;
  if (requests->size() == 1) {
    shared = first.size() - std::clamp<size_t>(num_own_tokens, 1, first.size());
  }
  for (const Request& request : *requests) {
    const auto& prompt = request.prompt;
    const auto end =
        first.begin() + static_cast<std::ptrdiff_t>(std::min(shared, prompt.size() - 1));
    shared = static_cast<size_t>(std::mismatch(first.begin(), end, prompt.begin()).first -
                                 first.begin());
  }
  for (Request& request : *requests) {
    request.group.parent_prefix_len = static_cast<int32_t>(shared);
  }
}

}  // namespace skein
