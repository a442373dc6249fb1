#pragma once

#include <vector>

#include "server/json/field_reader.h"
#include "server/model_registry.h"
#include "skein/request.h"

namespace skein {

// Reads a constraint of the answer to one of several texts, structured_outputs: {"choice": [...]}
// or the older guided_choice, as GenerateSpec::choices: each text as the tokenizer writes it in the
// middle of a text, the model's end token behind those that others begin with. Empty where there is
// no constraint. Mistakes end up in reader->status(): constraints of other kinds, texts that are
// empty, given twice or changed by the tokenizer, and fields that contradict a constraint.
std::vector<std::vector<TokenId>> ReadChoices(FieldReader* reader, const ModelEntry& model);

}  // namespace skein
