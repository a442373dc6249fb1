#pragma once

#include <vector>

#include "skein/request.h"
#include "text/tokenizer/decoder.h"
#include "text/tokenizer/json/json_fields.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/post_processor.h"
#include "text/tokenizer/pre_tokenizer.h"

namespace skein {

// The components of a tokenizer.json, each appended as flat steps. kUnsupported by name.
Status ReadNormalizer(JsonValue value, std::vector<Normalizer::Step>* steps);
Status ReadPreTokenizer(JsonValue value, std::vector<PreTokenizer::Step>* steps);
Status ReadDecoder(JsonValue value, std::vector<Decoder::Step>* steps);
Status ReadPostProcessor(JsonValue value, PostProcessor* processor);

}  // namespace skein
