#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/gguf_metadata.h"

namespace skein {

inline constexpr char kGgufBeginKey[] = "tokenizer.ggml.cls_token_id";
inline constexpr char kGgufMaskKey[] = "tokenizer.ggml.mask_token_id";
inline constexpr char kGgufSeparatorKey[] = "tokenizer.ggml.seperator_token_id";  // as published

// The id of the first of two keys that is there; an error names both. `other`: null for none.
Result<int64_t> RequireGgufToken(const GgufMetadata& metadata, const char* key, const char* other,
                                 size_t num_tokens);

// The post-processor of an encoder, which puts tokens around a text: <begin> A <separator>, and for
// a pair <begin> A <separator> B <separator>, with `num_separators` (1 or 2) in the middle, whose
// second text and its end are of segment `second_segment`. The tokens are those of cls_token_id and
// seperator_token_id, else those that begin and end a text; if neither is there, the error names
// the key.
Result<nlohmann::ordered_json> GgufEncoderFrame(const GgufMetadata& metadata,
                                                const std::vector<std::string_view>& tokens,
                                                int num_separators, int second_segment);

// Lets the mask's token take the spaces before it, as RoBERTa's and ModernBERT's do; files do not
// state it.
Status LetMaskTakeSpaces(const GgufMetadata& metadata, nlohmann::ordered_json* json);

// Reads WordPiece (tokenizer.ggml.model "bert") into `json`: a token that begins a word has U+2581
// in front of it in the file; a token that goes on has "##" in tokenizer.json. The text is lowered,
// and its accents are removed, unless a token has a capital letter.
Status ReadGgufWordPiece(const GgufMetadata& metadata, const std::vector<std::string_view>& tokens,
                         nlohmann::ordered_json* json);

// Reads SentencePiece's unigrams (tokenizer.ggml.model "t5") as XLM-RoBERTa has them.
Status ReadGgufUnigram(const GgufMetadata& metadata, const std::vector<std::string_view>& tokens,
                       nlohmann::ordered_json* json);

}  // namespace skein
