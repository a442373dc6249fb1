#include "apps/host/late_interaction_traits.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "apps/read_json.h"

namespace skein {
namespace {

// The tokenizer's mask token. In the files it is a string, or an object with the string as its
// content.
Result<std::string> MaskTokenOf(const std::string& dir) {
  for (const char* name : {"/tokenizer_config.json", "/special_tokens_map.json"}) {
    if (!std::filesystem::exists(dir + name)) continue;
    SKEIN_ASSIGN_OR_RETURN(const Json json, ReadJsonObject(dir + name));
    const auto found = json.find("mask_token");
    if (found == json.end()) continue;
    const Json& token = found->is_object() ? found->value("content", Json()) : *found;
    if (token.is_string()) return token.get<std::string>();
  }
  return std::string("[MASK]");
}

std::string WithoutEndSpace(std::string text) {
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

// The id of a marker, with or without the space behind it. Without such a token, the marker is text
// in front of the prompt `name`.
int32_t MarkerId(const std::string& marker, const Tokenizer& tokenizer, const char* name,
                 ModelTraits* traits) {
  if (marker.empty()) return -1;
  std::optional<TokenId> id = tokenizer.TokenToId(marker);
  if (!id) id = tokenizer.TokenToId(WithoutEndSpace(marker));
  if (id) return *id;
  traits->prompts[name] = marker + traits->prompts[name];
  return -1;
}

}  // namespace

Status SetLateInteraction(const ColbertConfig& colbert, const Tokenizer& tokenizer,
                          const std::string& tokenizer_dir, ModelTraits* traits) {
  LateInteractionTraits late;
  late.query_marker = MarkerId(colbert.query_marker, tokenizer, "query", traits);
  late.document_marker = MarkerId(colbert.document_marker, tokenizer, "document", traits);
  late.query_length = colbert.query_length;
  late.document_length = colbert.document_length;
  late.expansion_length = colbert.expansion_length;
  late.attends_to_expansion = colbert.attends_to_expansion;
  if (late.expansion_length > 0) {
    std::string token = colbert.expansion_token;
    if (token.empty()) {
      SKEIN_ASSIGN_OR_RETURN(token, MaskTokenOf(tokenizer_dir));
    }
    const std::optional<TokenId> id = tokenizer.TokenToId(token);
    if (!id) {
      return Status(StatusCode::kInvalidArgument,
                    tokenizer_dir + ": queries are filled with '" + token +
                        "', which is not in the vocabulary",
                    "mask_token");
    }
    late.expansion_id = *id;
  }
  for (const std::string& token : colbert.skipped_tokens) {
    if (const auto id = tokenizer.TokenToId(token)) late.skipped_ids.push_back(*id);
  }
  std::ranges::sort(late.skipped_ids);
  traits->late_interaction = std::move(late);
  return Status::Ok();
}

}  // namespace skein
