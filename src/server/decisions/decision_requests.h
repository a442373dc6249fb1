#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/model_registry.h"
#include "skein/request.h"

namespace skein {

// kUnsupported (param "model") if the model has no output matrix to read labels from.
Status CheckReadsLabels(const ModelEntry& model);

// One request for a prompt. kInvalidArgument with `field` if it is not UTF-8 or too long; `what`
// then says what the prompt is made of.
Result<Request> MakeRead(const ModelEntry& model, const Request& base, std::string_view text,
                         bool add_special_tokens, const std::string& field,
                         const std::string& what);

// Checks that a prompt has at least one token and at most tokens_max. As above.
Status CheckPromptLength(size_t tokens_max, size_t num_tokens, const std::string& field,
                         const std::string& what);

// Tokens of the longest prompt behind which `model`'s labels are read.
size_t MaxLabelTokens(const ModelEntry& model);

// Sets group.parent_prefix_len of all to the number of tokens at the head that all share; of a
// single one to all but `num_own_tokens`.
void SetSharedHead(size_t num_own_tokens, std::vector<Request>* requests);

// `status` of a part of a body, with `path` before its field's name.
Status Within(const std::string& path, const Status& status);

}  // namespace skein
