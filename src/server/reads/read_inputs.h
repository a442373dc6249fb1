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
#include "server/reads/late_interaction.h"
#include "skein/request.h"
#include "text/tokenizer.h"

namespace skein {

// The options for turning the texts of a request into prompts.
struct InputOptions {
  bool add_special_tokens = true;
  // Longer prompts are truncated, but keep their special tokens. Unset: they are refused.
  std::optional<Truncation> truncation;
  std::string prompt;            // the text before each input
  std::optional<LateSide> late;  // for a ColBERT model: which side of an interaction the texts are
  bool prompt_asked =
      false;  // set by the request, not by the model's default: ids are then refused
};

// Reads add_special_tokens and the fields of truncation: truncate_prompt_tokens (-1: to the limit
// of the model) and truncation_side, or TEI's truncate and truncation_direction. Texts are cut at
// their end unless the side is "left".
InputOptions ReadInputOptions(FieldReader* reader, const ModelEntry& model);

// Reads prompt_name: one of the model's prompts. Without it the model's default applies.
void ReadPromptName(FieldReader* reader, const ModelEntry& model, InputOptions* options);

// One input (a text, a pair of texts or an array of ids) in the form that the engine takes.
struct ReadInput {
  std::vector<TokenId> ids;
  std::optional<int32_t> second_segment_begin;
  std::optional<int32_t> num_attended;
  bool is_text = false;  // no array of ids
};

struct ReadInputs {
  std::vector<ReadInput> inputs;
  bool is_batch = false;  // the inputs came as an array, perhaps of one element
};

// Reads the inputs of the member `field`: a string, an array of strings, an array of ids or an
// array of arrays of ids. Fails if there is no input, an empty one, too many, or one beyond the
// limit of the model. Errors name the input's position in the array.
Result<ReadInputs> ReadTexts(const ModelEntry& model, const InputOptions& options,
                             const std::string& field, const Json* value);

// Encodes a text or a pair of texts; `param` names it in errors.
Result<ReadInput> EncodeText(const ModelEntry& model, const InputOptions& options,
                             const EncodeInput& text, const std::string& param);

// The number of tokens of the longest prompt for which `model` gives vectors or classes. The prompt
// may fill the context, since no answer follows it.
size_t MaxTokens(const ModelEntry& model);

// The greatest number of inputs in one HTTP request.
size_t MaxInputs(const ModelEntry& model);
// Fails with "field must hold 1 to N inputs, got M" if `count` is out of this range.
Status CheckNumInputs(const ModelEntry& model, const std::string& field, size_t count);

}  // namespace skein
