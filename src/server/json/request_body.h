#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http/http_message.h"
#include "server/json/field_reader.h"
#include "server/json/json.h"
#include "server/model_registry.h"
#include "server/router.h"

namespace skein {

// Parses the request's JSON object and adds missing scheduling fields: from its head, from the
// defaults of its key and from those of its route, in this order. kInvalidArgument for any other
// body.
Result<Json> ParseBody(const ServerContext& context, const HttpRequest& request);

// Finds the model that `model` names; kNotFound (param "model") if there is none. The field may be
// absent, or "unknown", if only one model is served.
Result<const ModelEntry*> FindModel(const ModelRegistry& models, FieldReader* reader);

// The same for a request for decisions: the named model's decision adapter, if it has one.
Result<const ModelEntry*> FindDecisionModel(const ModelRegistry& models, FieldReader* reader);

// Makes a chat's prompt: the template rendered over messages, tools, chat_template_kwargs and
// add_generation_prompt. Errors name the field.
Result<std::string> RenderChat(const ModelEntry& model, FieldReader* reader);

// Appends the ids of RenderChat's text; as EncodePrompt.
Status EncodeChat(const ModelEntry& model, std::string_view text, bool add_special_tokens,
                  size_t max_tokens, std::vector<TokenId>* ids);

}  // namespace skein
