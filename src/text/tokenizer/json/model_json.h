#pragma once

#include <memory>
#include <string>

#include "text/tokenizer/json/json_fields.h"
#include "text/tokenizer/models/model.h"

namespace skein {

// Reads the `model` of a tokenizer.json that is not BPE: WordPiece, Unigram or WordLevel.
// kUnsupported names any other model.
Result<std::unique_ptr<const Model>> ReadOtherModel(JsonValue model, const std::string& type);

}  // namespace skein
