#pragma once

#include <vector>

#include "skein/request.h"
#include "text/tokenizer/decoder.h"
#include "text/tokenizer/json/json_fields.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/post_processor.h"
#include "text/tokenizer/pre_tokenizer.h"

namespace skein {

// Readers of the components of a tokenizer.json. Each reader appends a flat list of steps.
// kUnsupported names a component outside the supported subset.
Status ReadNormalizer(JsonValue value, std::vector<Normalizer::Step>* steps);
Status ReadPreTokenizer(JsonValue value, std::vector<PreTokenizer::Step>* steps);
Status ReadDecoder(JsonValue value, std::vector<Decoder::Step>* steps);
Status ReadPostProcessor(JsonValue value, PostProcessor* processor);

}  // namespace skein
