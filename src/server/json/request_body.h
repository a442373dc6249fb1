#pragma once

#include <string>

#include "base/result.h"
#include "server/http/http_message.h"
#include "server/json/field_reader.h"
#include "server/json/json.h"
#include "server/model_registry.h"
#include "server/router.h"

namespace skein {

// The request's JSON object, with the scheduling fields that it lacks as its key's and its route's
// defaults have them; kInvalidArgument if the body is something else.
Result<Json> ParseBody(const ServerContext& context, const HttpRequest& request);

// The model that `model` names; kNotFound (param "model") if there is none. Where one model is
// served, the field may be absent.
Result<const ModelEntry*> FindModel(const ModelRegistry& models, FieldReader* reader);

// A chat's prompt: the template rendered over messages, tools, chat_template_kwargs and
// add_generation_prompt. Errors name the field.
Result<std::string> RenderChat(const ModelEntry& model, FieldReader* reader);

}  // namespace skein
