#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/json/field_reader.h"
#include "server/json/json.h"
#include "server/model_registry.h"
#include "skein/request.h"
#include "text/tokenizer.h"

namespace skein {

// How the texts of a request become prompts.
struct InputOptions {
  bool add_special_tokens = true;
  // Longer ones are cut to that many tokens; unset: refused. Special tokens stay.
  std::optional<Truncation> truncation;
  std::string prompt;         // put before each text
  bool prompt_asked = false;  // by the request, not by the model's default: then ids are refused
};

// Reads add_special_tokens and what says how to cut: truncate_prompt_tokens (-1: to what the model
// takes) and truncation_side, or TEI's truncate and truncation_direction. Texts lose their end
// unless "left" is asked for.
InputOptions ReadInputOptions(FieldReader* reader, const ModelEntry& model);

// Reads prompt_name: one of the model's prompts. Without it the model's default applies.
void ReadPromptName(FieldReader* reader, const ModelEntry& model, InputOptions* options);

// One text, pair or array of ids as the engine takes it.
struct ReadInput {
  std::vector<TokenId> ids;
  std::optional<int32_t> second_segment_begin;
};

struct ReadInputs {
  std::vector<ReadInput> inputs;
  bool is_batch = false;  // they came as an array of inputs, if only of one
};

// The member `field`: a string, an array of strings, an array of ids or an array of such arrays.
// Mistakes (none, an empty one, too many, a longer one than the model takes) name the place in it.
Result<ReadInputs> ReadTexts(const ModelEntry& model, const InputOptions& options,
                             const std::string& field, const Json* value);

// A text or a pair of texts; `param` names it in errors.
Result<ReadInput> EncodeText(const ModelEntry& model, const InputOptions& options,
                             const EncodeInput& text, const std::string& param);

// Tokens of the longest prompt of which `model` gives vectors or classes. It may fill the context:
// nothing follows it.
size_t MaxTokens(const ModelEntry& model);

// What one HTTP request may hold of inputs.
size_t MaxInputs(const ModelEntry& model);
// "field must hold 1 to N inputs, got M" unless it does.
Status CheckNumInputs(const ModelEntry& model, const std::string& field, size_t count);

}  // namespace skein
