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

// Parses the request's JSON object and adds missing scheduling fields, in this order: from its
// headers, from its key's defaults and from its route's defaults. kInvalidArgument if the body is
// no JSON object.
Result<Json> ParseBody(const ServerContext& context, const HttpRequest& request);

// Finds the model that the field `model` names. kNotFound (param "model") if there is no such
// model. If only one model is served, the field may be absent or "unknown".
Result<const ModelEntry*> FindModel(const ModelRegistry& models, FieldReader* reader);

// FindModel for a request for decisions: returns the named model's decision adapter if it has one.
Result<const ModelEntry*> FindDecisionModel(const ModelRegistry& models, FieldReader* reader);

// Reads the variables of a chat's template: messages, tools, chat_template_kwargs and
// add_generation_prompt. Errors name the field.
Result<Json> ReadChat(const ModelEntry& model, FieldReader* reader);

// Makes the prompt of a chat from the variables of ReadChat.
Result<std::string> RenderChat(const ModelEntry& model, const Json& variables);

// Appends the token ids of RenderChat's text. Fails as EncodePrompt does.
Status EncodeChat(const ModelEntry& model, std::string_view text, bool add_special_tokens,
                  size_t max_tokens, std::vector<TokenId>* ids);

}  // namespace skein
