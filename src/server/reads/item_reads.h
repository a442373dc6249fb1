#pragma once

#include <vector>

#include "base/result.h"
#include "server/json/field_reader.h"
#include "server/model_registry.h"
#include "skein/request.h"

namespace skein {

// The requests of a body with `query`, `items`, `label_token_ids`, `item_first` (and the scheduling
// fields): for each item the labels' logits behind query and item, or behind item and query. Texts
// are put together as they are; token ids too.
Result<std::vector<Request>> ItemReads(const ModelEntry& model, FieldReader* reader,
                                       bool want_log_sum_exp);

}  // namespace skein
