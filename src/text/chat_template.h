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
  using Json = nlohmann::ordered_json;  // member order reaches the tool descriptions

  // Parses a template. text/jinja/parser.h lists the supported part of Jinja; an error names any
  // other construct (kUnsupported).
  static Result<std::unique_ptr<ChatTemplate>> Parse(std::string_view source);
  // The template of a model directory: chat_template.jinja, else tokenizer_config.json's
  // `chat_template` (a string, or a list of named ones, of which "default"). kNotFound if none.
  // Special tokens of tokenizer_config.json (bos_token, ...) become variables.
  static Result<std::unique_ptr<ChatTemplate>> Load(const std::string& model_dir);
  virtual ~ChatTemplate() = default;

  // Renders as transformers' apply_chat_template does. `variables` is an object: messages, tools,
  // add_generation_prompt and whatever chat_template_kwargs holds; a member that is absent is
  // undefined in the template. raise_exception in the template and every runtime error of it are
  // kInvalidArgument with the template's message.
  virtual Result<std::string> Render(const Json& variables) const = 0;
};

}  // namespace skein
