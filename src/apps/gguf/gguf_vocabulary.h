#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/gguf_metadata.h"

namespace skein {

inline constexpr char kGgufTokensKey[] = "tokenizer.ggml.tokens";
inline constexpr char kGgufTypesKey[] = "tokenizer.ggml.token_type";
inline constexpr char kGgufScoresKey[] = "tokenizer.ggml.scores";

// tokenizer.ggml.token_type
enum GgufTokenType : int32_t {
  kGgufNormal = 1,
  kGgufUnknown,
  kGgufControl,
  kGgufUserDefined,
  kGgufUnused,
  kGgufByte,
};

// The strings of an array, which must be there. Refuses strings that JSON cannot hold and, with
// `unique`, strings that occur twice.
Result<std::vector<std::string_view>> RequireGgufStrings(const GgufMetadata& metadata,
                                                         const char* key, bool unique);

// The types of the tokens, one of GgufTokenType for each.
Result<std::vector<int64_t>> GgufTokenTypes(const GgufMetadata& metadata, size_t num_tokens);

// The scores of the tokens, one for each.
Result<std::vector<double>> GgufTokenScores(const GgufMetadata& metadata, size_t num_tokens);

// The added tokens of tokenizer.json: control tokens and unknown ones are special, user-defined
// ones are not.
nlohmann::ordered_json GgufAddedTokens(const std::vector<int64_t>& types,
                                       const std::vector<std::string_view>& tokens);

// The id that a key such as tokenizer.ggml.bos_token_id names; nullopt if the key is absent.
Result<std::optional<int64_t>> GgufTokenId(const GgufMetadata& metadata, const char* key,
                                           size_t num_tokens);

}  // namespace skein
