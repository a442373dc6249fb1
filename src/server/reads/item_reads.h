#pragma once

#include <vector>

#include "base/result.h"
#include "server/json/field_reader.h"
#include "server/model_registry.h"
#include "skein/request.h"

namespace skein {

// Makes the requests of a body with `query`, `items`, `label_token_ids`, `item_first` and the
// scheduling fields. Each request reads the labels' logits behind the query and one item, or behind
// the item and the query. Texts and token ids are joined unchanged.
Result<std::vector<Request>> ItemReads(const ModelEntry& model, FieldReader* reader,
                                       bool want_log_sum_exp);

}  // namespace skein
