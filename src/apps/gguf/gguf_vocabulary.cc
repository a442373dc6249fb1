#include "apps/gguf/gguf_vocabulary.h"

#include <string>
#include <unordered_set>
#include <utility>

#include "server/json/json.h"
#include "text/unicode/utf8.h"

namespace skein {
namespace {

Status WrongSize(const GgufMetadata& metadata, const char* key, size_t size, size_t num_tokens) {
  return metadata.Error(key, "has " + std::to_string(size) + " elements, but " + kGgufTokensKey +
                                 " has " + std::to_string(num_tokens));
}

}  // namespace

Result<std::vector<std::string_view>> RequireGgufStrings(const GgufMetadata& metadata,
                                                         const char* key, bool unique) {
  SKEIN_ASSIGN_OR_RETURN(auto strings, metadata.Strings(key));
  if (!strings) return metadata.Error(key, "is missing");
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i < strings->size(); ++i) {
    const std::string_view text = (*strings)[i];
    if (!IsValidUtf8(text)) {
      return metadata.Error(key, "holds invalid UTF-8 at index " + std::to_string(i));
    }
    if (unique && !seen.insert(text).second) {
      return metadata.Error(key, "holds '" + std::string(text) + "' twice");
    }
  }
  return *std::move(strings);
}

Result<std::vector<int64_t>> GgufTokenTypes(const GgufMetadata& metadata, size_t num_tokens) {
  SKEIN_ASSIGN_OR_RETURN(auto types, metadata.Ints(kGgufTypesKey));
  if (!types) return metadata.Error(kGgufTypesKey, "is missing");
  if (types->size() != num_tokens) {
    return WrongSize(metadata, kGgufTypesKey, types->size(), num_tokens);
  }
  for (size_t id = 0; id < num_tokens; ++id) {
    const int64_t type = (*types)[id];
    if (type >= kGgufNormal && type <= kGgufByte) continue;
    return metadata.Unsupported(kGgufTypesKey, "holds " + std::to_string(type) + " for token " +
                                                   std::to_string(id) + "; supported are 1 to 6");
  }
  return *std::move(types);
}

Result<std::vector<double>> GgufTokenScores(const GgufMetadata& metadata, size_t num_tokens) {
  SKEIN_ASSIGN_OR_RETURN(auto scores, metadata.Doubles(kGgufScoresKey));
  if (!scores) return metadata.Error(kGgufScoresKey, "is missing");
  if (scores->size() != num_tokens) {
    return WrongSize(metadata, kGgufScoresKey, scores->size(), num_tokens);
  }
  return *std::move(scores);
}

Json GgufAddedTokens(const std::vector<int64_t>& types,
                     const std::vector<std::string_view>& tokens) {
  Json added = Json::array();
  for (size_t id = 0; id < tokens.size(); ++id) {
    const int64_t type = types[id];
    if (type == kGgufNormal || type == kGgufUnused || type == kGgufByte) continue;
    Json token;
    token["id"] = id;
    token["content"] = tokens[id];
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"}) token[flag] = false;
    token["special"] = type != kGgufUserDefined;
    added.push_back(std::move(token));
  }
  return added;
}

Result<std::optional<int64_t>> GgufTokenId(const GgufMetadata& metadata, const char* key,
                                           size_t num_tokens) {
  SKEIN_ASSIGN_OR_RETURN(const auto id, metadata.Int(key));
  if (!id) return id;
  if (*id < 0 || *id >= static_cast<int64_t>(num_tokens)) {
    return metadata.Error(
        key, "is " + std::to_string(*id) + "; there are " + std::to_string(num_tokens) + " tokens");
  }
  return id;
}

}  // namespace skein
