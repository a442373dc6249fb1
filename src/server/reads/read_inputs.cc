#include "server/reads/read_inputs.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "server/http/http_message.h"
#include "server/prompt_text.h"

namespace skein {
namespace {

constexpr size_t kInputsMax = 2048;  // as in OpenAI's API

Status CheckLength(const ModelEntry& model, size_t num_tokens, const std::string& param) {
  if (num_tokens == 0) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} is empty: it must have at least one token", param), param);
  }
  const size_t most = MaxTokens(model);
  if (num_tokens <= most) return Status::Ok();
  const bool by_step = std::cmp_less(most, model.max_model_len);
  return Status(
      StatusCode::kInvalidArgument,
      fmt::format("{} has {} tokens, {} takes at most {}: shorten it, or set "
                  "truncate_prompt_tokens: -1 (truncate: true)",
                  param, num_tokens,
                  by_step ? "a step of this server (--max-num-batched-tokens)" : "the model", most),
      param);
}

void Cut(const Truncation& truncation, std::vector<TokenId>* ids) {
  if (ids->size() <= truncation.max_length) return;
  const auto excess = static_cast<std::ptrdiff_t>(ids->size() - truncation.max_length);
  if (truncation.direction == Truncation::Direction::kLeft) {
    ids->erase(ids->begin(), ids->begin() + excess);
  } else {
    ids->erase(ids->end() - excess, ids->end());
  }
}

Result<ReadInput> TakeIds(const ModelEntry& model, const InputOptions& options, const Json& value,
                          const std::string& param) {
  if (options.prompt_asked) {
    return Status(StatusCode::kInvalidArgument,
                  "prompt_name is not allowed with token ids: put the prompt's before them",
                  "prompt_name");
  }
  const int32_t vocab_size = model.engine->Limits().vocab_size;
  ReadInput input;
  input.ids.reserve(value.size());
  for (const Json& item : value) {
    const auto id = JsonInt(item);
    if (!id || *id < 0 || *id >= vocab_size) {
      const Json holder;
      FieldReader reader(holder);
      reader.RefuseValue(param, fmt::format("an array of token ids in [0, {}]", vocab_size - 1),
                         item);
      return reader.status();
    }
    input.ids.push_back(static_cast<TokenId>(*id));
  }
  if (options.truncation) Cut(*options.truncation, &input.ids);
  SKEIN_RETURN_IF_ERROR(CheckLength(model, input.ids.size(), param));
  return input;
}

Status EncodeFully(const ModelEntry& model, const InputOptions& options, const EncodeInput& text,
                   ReadInput* input) {
  EncodeOptions encode;
  encode.add_special_tokens = options.add_special_tokens;
  encode.truncation = options.truncation;
  Encoding encoding;
  SKEIN_RETURN_IF_ERROR(model.tokenizer->EncodeFull(text, encode, &encoding));
  input->ids = std::move(encoding.ids);
  const auto second = std::ranges::find(encoding.type_ids, 1);
  if (text.pair && second != encoding.type_ids.end()) {
    input->second_segment_begin = static_cast<int32_t>(second - encoding.type_ids.begin());
  }
  return Status::Ok();
}

}  // namespace

namespace {

// Encodes a text of a ColBERT model.
Result<ReadInput> EncodeLateInput(const ModelEntry& model, const InputOptions& options,
                                  std::string_view text, const std::string& param) {
  const bool cuts = options.truncation.has_value();
  const size_t most = cuts ? options.truncation->max_length : MaxTokens(model);
  SKEIN_ASSIGN_OR_RETURN(LateText late,
                         EncodeLate(model, *options.late, options.prompt, text, most, param));
  ReadInput input;
  input.ids = std::move(late.ids);
  input.num_attended = late.num_attended;
  input.is_text = true;
  return input;
}

}  // namespace

InputOptions ReadInputOptions(FieldReader* reader, const ModelEntry& model) {
  InputOptions options;
  options.add_special_tokens = reader->Bool("add_special_tokens").value_or(true);
  const auto keep = reader->Int("truncate_prompt_tokens", -1, std::numeric_limits<int32_t>::max());
  if (keep == 0) reader->RefuseValue("truncate_prompt_tokens", "-1 or at least 1", Json(0));
  const bool truncate = reader->Bool("truncate").value_or(false);
  if (keep || truncate) {
    options.truncation.emplace();
    options.truncation->max_length = MaxTokens(model);
    if (keep && *keep > 0) {
      options.truncation->max_length = std::min(MaxTokens(model), static_cast<size_t>(*keep));
    }
  }
  for (const char* name : {"truncation_side", "truncation_direction"}) {
    const auto side = reader->String(name);
    if (!side) continue;
    const bool left = EqualsIgnoreCase(*side, "left");
    if (!left && !EqualsIgnoreCase(*side, "right")) {
      reader->RefuseValue(name, "\"left\" or \"right\"", Json(*side));
    }
    if (left && options.truncation) options.truncation->direction = Truncation::Direction::kLeft;
  }
  return options;
}

void ReadPromptName(FieldReader* reader, const ModelEntry& model, InputOptions* options) {
  const auto& prompts = model.traits.prompts;
  const auto name = reader->String("prompt_name");
  const auto found = prompts.find(name.value_or(model.traits.default_prompt));
  if (found != prompts.end()) {
    options->prompt = found->second;
    options->prompt_asked = name.has_value();
    return;
  }
  if (!name) return;
  std::string known;
  for (const auto& [key, text] : prompts) known += (known.empty() ? "" : ", ") + key;
  reader->RefuseValue("prompt_name",
                      known.empty() ? "absent: the model has no prompts" : "one of " + known,
                      Json(*name));
}

Result<ReadInput> EncodeText(const ModelEntry& model, const InputOptions& options,
                             const EncodeInput& text, const std::string& param) {
  const auto refuse = [&](const Status& status) {
    return Status(status.code(), param + ": " + status.message(), param);
  };
  if (options.late) return EncodeLateInput(model, options, text.text, param);
  std::string prompted;
  EncodeInput whole = text;
  if (!options.prompt.empty()) {
    prompted = options.prompt + std::string(text.text);
    whole.text = prompted;
  }
  ReadInput input;
  input.is_text = true;
  if (!whole.pair) {
    Status encoded = Status::Ok();
    if (!options.truncation) {
      encoded = CheckTextBytes(*model.tokenizer, whole.text.size(), MaxTokens(model));
    }
    if (encoded.ok()) {
      encoded = model.tokenizer->Encode(whole.text, options.add_special_tokens, &input.ids);
    }
    if (!encoded.ok()) return refuse(encoded);
    // An empty text has only the tokenizer's special tokens, and some tokenizers add none.
    if (input.ids.empty()) {
      return Status(StatusCode::kInvalidArgument, param + " is empty: it must have some text",
                    param);
    }
  }
  // The ids are enough for a text that is not too long.
  const bool too_long = options.truncation && input.ids.size() > options.truncation->max_length;
  if (whole.pair || too_long) {
    const Status encoded = EncodeFully(model, options, whole, &input);
    if (encoded.code() == StatusCode::kUnsupported && too_long) {
      Cut(*options.truncation, &input.ids);  // the tokenizer adds no special tokens
    } else if (!encoded.ok()) {
      return refuse(encoded);
    }
  }
  SKEIN_RETURN_IF_ERROR(CheckLength(model, input.ids.size(), param));
  return input;
}

size_t MaxTokens(const ModelEntry& model) {
  // Some models compute a prompt only as a whole, in one step.
  const int32_t whole = model.engine->Limits().max_whole_prompt_len;
  const int32_t context = model.max_model_len;
  return static_cast<size_t>(whole > 0 ? std::min(whole, context) : context);
}

size_t MaxInputs(const ModelEntry& model) {
  return std::min(kInputsMax, static_cast<size_t>(model.engine->Limits().max_queued_requests));
}

Status CheckNumInputs(const ModelEntry& model, const std::string& field, size_t count) {
  if (count >= 1 && count <= MaxInputs(model)) return Status::Ok();
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{} must hold 1 to {} inputs, got {}", field, MaxInputs(model), count),
                field);
}

Result<ReadInputs> ReadTexts(const ModelEntry& model, const InputOptions& options,
                             const std::string& field, const Json* value) {
  if (value == nullptr) {
    return Status(StatusCode::kInvalidArgument, field + " must be given", field);
  }
  const auto read = [&](const Json& item, const std::string& param) -> Result<ReadInput> {
    if (IsTokenIds(item)) return TakeIds(model, options, item, param);
    if (item.is_string()) {
      return EncodeText(model, options, {item.get_ref<const std::string&>(), {}}, param);
    }
    const Json holder;
    FieldReader reader(holder);
    reader.RefuseValue(param,
                       "a string, an array of strings, an array of token ids or an array of arrays "
                       "of token ids, none of them empty",
                       item);
    return reader.status();
  };
  ReadInputs result;
  if (!value->is_array() || IsTokenIds(*value)) {
    SKEIN_ASSIGN_OR_RETURN(result.inputs.emplace_back(), read(*value, field));
    return result;
  }
  result.is_batch = true;
  SKEIN_RETURN_IF_ERROR(CheckNumInputs(model, field, value->size()));
  result.inputs.reserve(value->size());
  for (size_t i = 0; i < value->size(); ++i) {
    SKEIN_ASSIGN_OR_RETURN(result.inputs.emplace_back(),
                           read((*value)[i], fmt::format("{}[{}]", field, i)));
  }
  return result;
}

}  // namespace skein
