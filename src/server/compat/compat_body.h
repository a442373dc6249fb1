#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "server/json/json.h"

namespace skein {

// Helpers that turn the requests of other dialects into bodies of /v1/chat/completions.

// The text of `content`, which is null, a string, or an array of text parts ("text", "input_text"
// or "output_text"). Parts of other types are an error that names `param`.
Result<std::string> TextOfContent(const Json& content, const std::string& param);

// Renames the member `from` of `*body` to `to`. Drops it if it is null or if `to` exists already.
void MoveMember(const char* from, const char* to, Json* body);

Status InvalidField(const std::string& param, const std::string& allowed);

// Switches thinking on or off by the template's variable enable_thinking, unless the body's
// chat_template_kwargs have that variable.
void SetThinking(bool thinks, Json* body);

// The member `name` of an object if it is a string, else an empty text.
std::string StringMember(const Json& object, const char* name);

// A tool in the form of /v1/chat/completions. A null `schema` means no parameters.
Json FunctionTool(const Json& name, const Json& description, const Json& schema);

// A tool call of an assistant's message, in the chat's form. `arguments` is an object or the text
// of one.
Json FunctionCall(const std::string& id, const Json& name, const Json& arguments);

// The arguments of a call as a value. Returns {} if `text` is no JSON object, for example if it was
// cut short.
Json ArgumentsObject(const std::string& text);

}  // namespace skein
