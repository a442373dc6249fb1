#pragma once

#include <vector>

#include "server/json/field_reader.h"
#include "server/model_registry.h"
#include "skein/request.h"

namespace skein {

// Reads the constraint that the answer is one of several texts: structured_outputs {"choice":
// [...]} or the older guided_choice. Returns GenerateSpec::choices: the tokens of each text behind
// other text. The model's end token follows a choice that is the beginning of another choice. Empty
// without a constraint. Errors go to reader->status(): constraints of other kinds, fields that
// contradict a constraint, and texts that are empty, repeated or changed by the tokenizer.
std::vector<std::vector<TokenId>> ReadChoices(FieldReader* reader, const ModelEntry& model);

}  // namespace skein
