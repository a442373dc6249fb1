#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace skein {

// A model's own Jinja chat template, parsed once. Immutable; Render may run on any thread.
class ChatTemplate {
 public:
  using Json = nlohmann::ordered_json;  // keeps the order of members, which tool descriptions show

  // Parses a template. text/jinja/parser.h lists the supported part of Jinja; an error names any
  // other construct (kUnsupported).
  static Result<std::unique_ptr<ChatTemplate>> Parse(std::string_view source);
  // Loads the template of a model directory: chat_template.jinja, otherwise `chat_template` in
  // tokenizer_config.json. The latter is a string or a list of named templates. From a list,
  // "tool_use" is used for requests with tools, and "default" for others. kNotFound if there is no
  // template. The special tokens of tokenizer_config.json (bos_token, ...) become variables.
  static Result<std::unique_ptr<ChatTemplate>> Load(const std::string& model_dir);
  virtual ~ChatTemplate() = default;

  // Renders the template as apply_chat_template of transformers does. `variables` is an object:
  // messages, tools, add_generation_prompt and the members of chat_template_kwargs. An absent
  // member is undefined in the template. raise_exception and every runtime error give
  // kInvalidArgument with the template's message.
  virtual Result<std::string> Render(const Json& variables) const = 0;

  // The text of the template for requests without tools.
  virtual std::string source() const { return {}; }
};

}  // namespace skein
