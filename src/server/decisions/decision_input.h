#pragma once

#include <string>

#include "base/result.h"
#include "server/json/json.h"

namespace skein {

// The text of `value`: a string, or an array of parts input_text (or text) and input_json, whose
// `data` is written as JSON. Parts are joined by line feeds. Other parts, such as images, and
// inputs without text are refused; `field` names the input in errors.
Result<std::string> DecisionText(const Json& value, const std::string& field);

// The text of `input` of /v1/decisions: a string, or an array of user messages, whose texts are
// joined by empty lines.
Result<std::string> DecisionInput(const Json* value, const std::string& field);

}  // namespace skein
