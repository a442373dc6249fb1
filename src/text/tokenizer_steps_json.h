#pragma once

#include <vector>

#include "skein/request.h"
#include "text/decoder.h"
#include "text/json_fields.h"
#include "text/normalizer.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"

namespace skein {

// The components of a tokenizer.json, each appended as flat steps. kUnsupported by name.
Status ReadNormalizer(JsonValue value, std::vector<Normalizer::Step>* steps);
Status ReadPreTokenizer(JsonValue value, std::vector<PreTokenizer::Step>* steps);
Status ReadDecoder(JsonValue value, std::vector<Decoder::Step>* steps);
Status ReadPostProcessor(JsonValue value, PostProcessor* processor);

}  // namespace skein
