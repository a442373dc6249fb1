#pragma once

#include <string>

#include "server/json/field_reader.h"
#include "server/model_registry.h"
#include "server/reasoning/answer_parser.h"

namespace skein {

// Reads reasoning_format ("none", "auto" or "deepseek"; default: the model's) and
// include_reasoning into `parsing`, with the model's style. Errors go to reader->status().
void ReadReasoningFields(FieldReader* reader, const ModelEntry& model, AnswerParsing* parsing);

// Reads reasoning_effort into the variables of a chat's template: reasoning_effort and
// enable_thinking. "none" switches thinking off. The harmony format knows neither "none" nor
// "minimal": they become "low". Errors go to reader->status().
void ReadReasoningEffort(FieldReader* reader, const ModelEntry& model, Json* variables);

// Gives the reasoning of an earlier answer, which clients send as reasoning_content, reasoning or
// thinking, to the template under the names reasoning_content and thinking. `message` has been
// checked, and its content is a text. kInvalidArgument, with `param` before the field's name, if
// reasoning_content is not a string.
Status PassReasoning(const ModelEntry& model, const std::string& param, Json* message);

}  // namespace skein
