#pragma once

#include <vector>

#include "skein/request.h"
#include "text/decoder.h"
#include "text/json_fields.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"

namespace skein {

// The components of a tokenizer.json, each appended as flat steps. kUnsupported by name.
Status ReadNormalizer(JsonValue value, std::vector<Normalizer::Step>* steps);
Status ReadPreTokenizer(JsonValue value, std::vector<PreTokenizer::Step>* steps);
Status ReadDecoder(JsonValue value, std::vector<Decoder::Step>* steps);
// Wraps what is in *prefix and *suffix in the special tokens of the post-processor.
Status ReadPostProcessor(JsonValue value, std::vector<TokenId>* prefix,
                         std::vector<TokenId>* suffix);

}  // namespace skein
