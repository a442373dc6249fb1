#include "text/tokenizer/json/model_json.h"

#include <limits>
#include <utility>

#include "text/tokenizer/models/unigram.h"
#include "text/tokenizer/models/wordpiece.h"

namespace skein {
namespace {

Result<Vocabulary> ReadVocabulary(JsonValue model) {
  simdjson::dom::object vocab;
  if (model.at_key("vocab").get(vocab) != simdjson::SUCCESS) {
    return JsonError(kModelObject, "'vocab' must be an object");
  }
  std::vector<std::pair<std::string, TokenId>> entries;
  entries.reserve(vocab.size());
  for (const auto& [token, value] : vocab) {
    int64_t id = 0;
    if (value.get(id) != simdjson::SUCCESS || id < 0 || id > std::numeric_limits<TokenId>::max()) {
      return JsonError(kModelObject,
                       "'vocab': the id of '" + std::string(token) + "' is no token id");
    }
    entries.emplace_back(token, static_cast<TokenId>(id));
  }
  return Vocabulary::Create(std::move(entries));
}

Result<std::unique_ptr<const Model>> ReadWordPiece(JsonValue model) {
  WordPiece::Spec spec;
  SKEIN_ASSIGN_OR_RETURN(spec.unk_token, JsonString(model, "unk_token", kModelObject));
  SKEIN_ASSIGN_OR_RETURN(spec.continuing_subword_prefix,
                         JsonString(model, "continuing_subword_prefix", kModelObject));
  SKEIN_ASSIGN_OR_RETURN(const int64_t max_chars,
                         JsonInt(model, "max_input_chars_per_word", 0,
                                 std::numeric_limits<int32_t>::max(), kModelObject));
  spec.max_input_chars_per_word = static_cast<size_t>(max_chars);
  SKEIN_ASSIGN_OR_RETURN(Vocabulary vocabulary, ReadVocabulary(model));
  return WordPiece::Create(std::move(vocabulary), std::move(spec));
}

Result<std::unique_ptr<const Model>> ReadWordLevel(JsonValue model) {
  SKEIN_ASSIGN_OR_RETURN(const std::string unk_token, JsonString(model, "unk_token", kModelObject));
  SKEIN_ASSIGN_OR_RETURN(Vocabulary vocabulary, ReadVocabulary(model));
  const std::optional<TokenId> unk_id = vocabulary.TokenToId(unk_token);
  return std::unique_ptr<const Model>(std::make_unique<WordLevel>(std::move(vocabulary), unk_id));
}

Result<std::unique_ptr<const Model>> ReadUnigram(JsonValue model) {
  Unigram::Spec spec;
  for (const char* key : {"alpha", "nbest_size"}) {  // settings of sampling are refused
    if (JsonHas(model, key)) return NotSupported(kModelObject, "'" + std::string(key) + "'");
  }
  if (JsonHas(model, "unk_id")) {
    SKEIN_ASSIGN_OR_RETURN(
        const int64_t id,
        JsonInt(model, "unk_id", 0, std::numeric_limits<TokenId>::max(), kModelObject));
    spec.unk_id = static_cast<TokenId>(id);
  }
  SKEIN_ASSIGN_OR_RETURN(spec.byte_fallback, JsonBool(model, "byte_fallback", false, kModelObject));
  SKEIN_RETURN_IF_ERROR(JsonForEach(model, "vocab", kModelObject, [&](JsonValue item) -> Status {
    simdjson::dom::array entry;
    std::string_view token;
    double score = 0;
    if (item.get(entry) != simdjson::SUCCESS || entry.size() != 2 ||
        entry.at(0).get(token) != simdjson::SUCCESS ||
        entry.at(1).get(score) != simdjson::SUCCESS) {
      return JsonError(kModelObject, "'vocab': entry " + std::to_string(spec.tokens.size()) +
                                         " is not [token, score]");
    }
    spec.tokens.emplace_back(token);
    spec.scores.push_back(score);
    return Status::Ok();
  }));
  return Unigram::Create(std::move(spec));
}

}  // namespace

Result<std::unique_ptr<const Model>> ReadOtherModel(JsonValue model, const std::string& type) {
  if (type == "WordPiece") return ReadWordPiece(model);
  if (type == "WordLevel") return ReadWordLevel(model);
  if (type == "Unigram") return ReadUnigram(model);
  return NotSupported(kModelObject, type);
}

}  // namespace skein
