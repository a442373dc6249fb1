#pragma once

#include <vector>

#include "server/json/field_reader.h"
#include "server/model_registry.h"
#include "skein/request.h"

namespace skein {

// Reads a constraint of the answer to one of several texts: structured_outputs {"choice": [...]} or
// the older guided_choice. The result is GenerateSpec::choices: each text as the tokenizer writes
// it in the middle of a text. The model's end token follows a choice with which another one begins.
// Empty without a constraint. Errors go to reader->status(): constraints of other kinds, fields
// that contradict a constraint, and texts that are empty, repeated or changed by the tokenizer.
std::vector<std::vector<TokenId>> ReadChoices(FieldReader* reader, const ModelEntry& model);

}  // namespace skein
