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

// Makes the request for one prompt. kInvalidArgument with `field` if the prompt is not UTF-8 or too
// long; `what` then says what the prompt is made of.
Result<Request> MakeRead(const ModelEntry& model, const Request& base, std::string_view text,
                         bool add_special_tokens, const std::string& field,
                         const std::string& what);

// Checks that a prompt has at least one token and at most tokens_max. The error is that of
// MakeRead.
Status CheckPromptLength(size_t tokens_max, size_t num_tokens, const std::string& field,
                         const std::string& what);

// The number of tokens of the longest prompt behind which labels of `model` can be read.
size_t MaxLabelTokens(const ModelEntry& model);

// Sets group.parent_prefix_len of all requests to the length of their common prefix, in tokens. A
// single request gets its length less `num_own_tokens`.
void SetSharedHead(size_t num_own_tokens, std::vector<Request>* requests);

// `status`, which is about a part of a body, with `path` before its field's name.
Status Within(const std::string& path, const Status& status);

}  // namespace skein
