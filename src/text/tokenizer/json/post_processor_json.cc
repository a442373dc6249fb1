#include <limits>
#include <utility>

#include "text/tokenizer/json/tokenizer_steps_json.h"

namespace skein {
namespace {

constexpr std::string_view kPostProcessor = "tokenizer.json: post_processor";

// Reads ["token", id], the form of tokens in RobertaProcessing and BertProcessing.
Result<TokenId> ReadTokenPair(JsonValue value, std::string_view key) {
  simdjson::dom::array pair;
  int64_t id = 0;
  if (value.at_key(key).get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
      pair.at(1).get(id) != simdjson::SUCCESS || id < 0 ||
      id > std::numeric_limits<TokenId>::max()) {
    return JsonError(kPostProcessor, "'" + std::string(key) + "' must be [token, id]");
  }
  return static_cast<TokenId>(id);
}

// The ids of an entry of `special_tokens`.
Result<std::vector<TokenId>> ReadSpecialIds(JsonValue value, const std::string& name) {
  JsonValue tokens, token;
  if (value.at_key("special_tokens").get(tokens) != simdjson::SUCCESS ||
      tokens.at_key(name).get(token) != simdjson::SUCCESS) {
    return JsonError(kPostProcessor, "'" + name + "' is not in 'special_tokens'");
  }
  std::vector<TokenId> ids;
  SKEIN_RETURN_IF_ERROR(JsonForEach(token, "ids", kPostProcessor, [&](JsonValue item) -> Status {
    int64_t id = 0;
    if (item.get(id) != simdjson::SUCCESS || id < 0 || id > std::numeric_limits<TokenId>::max()) {
      return JsonError(kPostProcessor, "an id of '" + name + "' is not a token id");
    }
    ids.push_back(static_cast<TokenId>(id));
    return Status::Ok();
  }));
  return ids;
}

// `single` or `pair` of a TemplateProcessing.
Result<std::vector<PostProcessor::Part>> ReadTemplateParts(JsonValue value, std::string_view key) {
  using Sequence = PostProcessor::Sequence;
  std::vector<PostProcessor::Part> parts;
  SKEIN_RETURN_IF_ERROR(JsonForEach(value, key, kPostProcessor, [&](JsonValue piece) -> Status {
    JsonValue part;
    const bool is_sequence = piece.at_key("Sequence").get(part) == simdjson::SUCCESS;
    if (!is_sequence && piece.at_key("SpecialToken").get(part) != simdjson::SUCCESS) {
      return JsonError(kPostProcessor,
                       "'" + std::string(key) + "' must be of Sequence and SpecialToken");
    }
    SKEIN_ASSIGN_OR_RETURN(const std::string name, JsonString(part, "id", kPostProcessor));
    SKEIN_ASSIGN_OR_RETURN(
        const int64_t type_id,
        JsonInt(part, "type_id", 0, std::numeric_limits<int32_t>::max(), kPostProcessor));
    const auto type = static_cast<int32_t>(type_id);
    if (!is_sequence) {
      SKEIN_ASSIGN_OR_RETURN(std::vector<TokenId> ids, ReadSpecialIds(value, name));
      parts.push_back({Sequence::kSpecial, type, std::move(ids)});
    } else if (name == "A" || name == "B") {
      parts.push_back({name == "A" ? Sequence::kA : Sequence::kB, type, {}});
    } else {
      return JsonError(kPostProcessor, "the sequence '" + name + "' is neither A nor B");
    }
    return Status::Ok();
  }));
  return parts;
}

}  // namespace

Status ReadPostProcessor(JsonValue value, PostProcessor* processor) {
  if (value.is_null()) return Status::Ok();
  SKEIN_ASSIGN_OR_RETURN(const std::string type, JsonString(value, "type", kPostProcessor));
  if (type == "Sequence") {
    return JsonForEach(value, "processors", kPostProcessor,
                       [&](JsonValue item) { return ReadPostProcessor(item, processor); });
  }
  if (type == "TemplateProcessing") {
    SKEIN_ASSIGN_OR_RETURN(const auto single, ReadTemplateParts(value, "single"));
    SKEIN_ASSIGN_OR_RETURN(const auto pair, ReadTemplateParts(value, "pair"));
    return processor->AddTemplate(single, pair);
  }
  if (type == "ByteLevel" || type == "RobertaProcessing") {
    SKEIN_ASSIGN_OR_RETURN(const bool trim, JsonBool(value, "trim_offsets", true, kPostProcessor));
    SKEIN_ASSIGN_OR_RETURN(const bool add_prefix_space,
                           JsonBool(value, "add_prefix_space", true, kPostProcessor));
    if (type == "ByteLevel") {
      if (trim) processor->AddTrim(add_prefix_space);
      return Status::Ok();
    }
    SKEIN_ASSIGN_OR_RETURN(const TokenId cls, ReadTokenPair(value, "cls"));
    SKEIN_ASSIGN_OR_RETURN(const TokenId sep, ReadTokenPair(value, "sep"));
    return processor->AddRoberta(cls, sep, trim, add_prefix_space);
  }
  if (type == "BertProcessing") {
    SKEIN_ASSIGN_OR_RETURN(const TokenId cls, ReadTokenPair(value, "cls"));
    SKEIN_ASSIGN_OR_RETURN(const TokenId sep, ReadTokenPair(value, "sep"));
    return processor->AddBert(cls, sep);
  }
  return NotSupported(kPostProcessor, type);
}

}  // namespace skein
