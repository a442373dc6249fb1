#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/json/field_reader.h"
#include "server/model_registry.h"
#include "server/reads/pair_reads.h"

namespace skein {

// The fields that routes over pairs of texts have in common: scheduling, `instruction`,
// `truncate_prompt_tokens` (-1: what the model takes). Mistakes end up in reader->status().
void ReadPairFields(FieldReader* reader, const ModelEntry& model, PairTask* task);

// A text, or an array of at least one: strings, or objects with a string `text`.
Result<std::vector<std::string>> TextList(const FieldReader& reader, const std::string& field);

}  // namespace skein
