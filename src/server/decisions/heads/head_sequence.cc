#include "server/decisions/heads/head_sequence.h"

#include <spdlog/fmt/fmt.h>

#include <set>

namespace skein {

int32_t TypeIndex(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::kChoice:
      return 0;
    case DecisionKind::kScore:
      return 1;
    case DecisionKind::kPredicate:
      break;
  }
  return 2;
}

std::string OptionBucket(const DecisionQuestion& question) {
  constexpr std::string_view kTypeNames[] = {"choice", "score", "noul"};
  const size_t n = question.options.size();
  const char* size = n <= 2 ? "2" : n <= 5 ? "3-5" : n <= 10 ? "6-10" : "11+";
  return fmt::format("{}:{}", kTypeNames[TypeIndex(question.kind)], size);
}

Result<TokenId> FindSpecialToken(const ModelEntry& model, std::string_view text) {
  const std::optional<TokenId> found = model.tokenizer->TokenToId(text);
  if (found) return *found;
  return Status(StatusCode::kInvalidArgument,
                fmt::format("the tokenizer of {} has no token '{}'", model.name(), text), "model");
}

Status EncodeForHead(const ModelEntry& model, std::string_view text, std::vector<TokenId>* ids) {
  if (model.user_special_tokens != UserSpecialTokens::kPlain) {
    return model.tokenizer->Encode(text, false, ids);
  }
  return model.tokenizer->EncodeWith(text, {.all = true}, false, ids);
}

int32_t CountDistinct(const std::vector<std::vector<TokenId>>& options) {
  return static_cast<int32_t>(std::set(options.begin(), options.end()).size());
}

std::string LabelledText(const std::string& label, const std::string& description) {
  return description.empty() ? label : label + ": " + description;
}

}  // namespace skein
