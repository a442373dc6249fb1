#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/json/field_reader.h"
#include "server/model_registry.h"
#include "server/reads/pair_reads.h"

namespace skein {

// Reads the fields that all routes for pairs of texts share: the scheduling fields, `instruction`
// and `truncate_prompt_tokens` (-1: the limit of the model). Errors go to reader->status().
void ReadPairFields(FieldReader* reader, const ModelEntry& model, PairTask* task);

// Reads a text, or a nonempty array of texts. In the array, a text is a string or an object with a
// string `text`.
Result<std::vector<std::string>> TextList(const FieldReader& reader, const std::string& field);

}  // namespace skein
