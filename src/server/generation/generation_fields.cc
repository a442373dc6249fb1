#include "server/generation/generation_fields.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>

#include "server/generation/choice_fields.h"
#include "server/generation/grammar_fields.h"
#include "server/json/scheduling_fields.h"

namespace skein {
namespace {

constexpr size_t kStopStringsMax = 16;
constexpr size_t kStopStringBytesMax = 4096;
constexpr size_t kStopTokensMax = 1024;
constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();

void ReadLogitBias(FieldReader* reader, int32_t vocab_size, SamplingParams* sampling) {
  const Json* object = reader->Object("logit_bias");
  if (object == nullptr) return;
  for (const auto& [key, value] : object->items()) {
    TokenId id = -1;
    const char* end = key.data() + key.size();
    const auto [parsed, error] = std::from_chars(key.data(), end, id);
    if (error != std::errc() || parsed != end || id < 0 || id >= vocab_size) {
      reader->RefuseValue(
          "logit_bias", fmt::format("an object with token ids in [0, {}] as names", vocab_size - 1),
          Json(key));
      return;
    }
    if (!value.is_number() || !(value.get<double>() >= -100 && value.get<double>() <= 100)) {
      reader->RefuseValue("logit_bias", "an object with numbers in [-100, 100] as values", value);
      return;
    }
    const bool known = std::any_of(sampling->logit_bias.begin(), sampling->logit_bias.end(),
                                   [id](const auto& entry) { return entry.first == id; });
    if (!known) sampling->logit_bias.emplace_back(id, value.get<float>());
  }
}

void ReadSampling(FieldReader* reader, const ModelEntry& model, uint64_t seed,
                  SamplingParams* sampling) {
  const int32_t vocab_size = model.engine->Limits().vocab_size;
  sampling->temperature =
      static_cast<float>(reader->Number("temperature", 0, 2).value_or(model.defaults.temperature));
  sampling->top_p =
      static_cast<float>(reader->NumberAbove("top_p", 0, 1).value_or(model.defaults.top_p));
  const int64_t top_k = reader->Int("top_k", -1, kInt32Max).value_or(model.defaults.top_k);
  // -1: all tokens, as in vLLM
  sampling->top_k = static_cast<int32_t>(std::max<int64_t>(top_k, 0));
  sampling->min_p = static_cast<float>(reader->Number("min_p", 0, 1).value_or(0));
  sampling->repetition_penalty =
      static_cast<float>(reader->Number("repetition_penalty", kMinRepetitionPenalty, 1000)
                             .value_or(model.defaults.repetition_penalty));
  sampling->presence_penalty =
      static_cast<float>(reader->Number("presence_penalty", -2, 2).value_or(0));
  sampling->frequency_penalty =
      static_cast<float>(reader->Number("frequency_penalty", -2, 2).value_or(0));
  ReadLogitBias(reader, vocab_size, sampling);
  sampling->allowed_token_ids = reader->TokenIds("allowed_token_ids", vocab_size);
  std::ranges::sort(sampling->allowed_token_ids);
  const auto repeated = std::ranges::unique(sampling->allowed_token_ids);
  sampling->allowed_token_ids.erase(repeated.begin(), repeated.end());
  if (reader->Has("allowed_token_ids") && sampling->allowed_token_ids.empty()) {
    reader->Refuse("allowed_token_ids", "allowed_token_ids must name at least one token id");
  }
  const auto given =
      reader->Int("seed", std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
  sampling->seed = given ? static_cast<uint64_t>(*given) : seed;
}

void ReadStops(FieldReader* reader, const ModelEntry& model, GenerationFields* fields) {
  TextOptions& text = fields->text;
  std::vector<std::string> stops = reader->Strings("stop", kStopStringsMax);
  for (const std::string& stop : stops) {
    if (stop.empty() || stop.size() > kStopStringBytesMax) {
      reader->RefuseValue("stop", fmt::format("strings of 1 to {} bytes", kStopStringBytesMax),
                          Json(stop));
    }
  }
  if (reader->status().ok()) text.stop = std::move(stops);
  text.stop_token_ids = reader->TokenIds("stop_token_ids", model.engine->Limits().vocab_size);
  if (text.stop_token_ids.size() > kStopTokensMax) {
    reader->Refuse("stop_token_ids",
                   fmt::format("stop_token_ids must be at most {} token ids, got {}",
                               kStopTokensMax, text.stop_token_ids.size()));
  }
  text.include_stop_str = reader->Bool("include_stop_str_in_output").value_or(false);
  text.skip_special_tokens = reader->Bool("skip_special_tokens").value_or(true);

  GenerateSpec& spec = fields->request.generate();
  spec.stop_token_ids = text.stop_token_ids;
  if (!reader->Bool("ignore_eos").value_or(false)) {
    text.eos_token_ids = model.defaults.eos_token_ids;
    for (TokenId id : model.defaults.eos_token_ids) {
      const auto& ids = spec.stop_token_ids;
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) spec.stop_token_ids.push_back(id);
    }
  }
  spec.min_tokens = static_cast<int32_t>(reader->Int("min_tokens", 0, kInt32Max).value_or(0));
  text.min_tokens = spec.min_tokens;
}

// The field of the answer's length. If both are given, the newer name counts.
const char* LengthField(const FieldReader& reader) {
  return reader.Has("max_completion_tokens") ? "max_completion_tokens" : "max_tokens";
}

void ReadLengths(FieldReader* reader, const ModelEntry& model, GenerationFields* fields) {
  const auto older = reader->Int("max_tokens", 0, kInt32Max);
  const auto newer = reader->Int("max_completion_tokens", 0, kInt32Max);
  if (older || newer) fields->max_tokens = static_cast<int32_t>(newer ? *newer : *older);
  const char* const name = LengthField(*reader);
  if (fields->max_tokens && fields->request.generate().min_tokens > *fields->max_tokens) {
    reader->Refuse("min_tokens",
                   fmt::format("min_tokens must be at most {} ({}), got {}", name,
                               *fields->max_tokens, fields->request.generate().min_tokens));
  }
  const int32_t samples_max = std::max(1, model.engine->Limits().max_num_seqs);
  const auto n = reader->Int("n", 1, samples_max);
  fields->request.generate().num_samples = static_cast<int32_t>(n.value_or(1));
  const auto best_of = reader->Int("best_of", 1, kInt32Max);
  if (best_of && *best_of != fields->request.generate().num_samples) {
    reader->Refuse("best_of",
                   fmt::format("best_of must equal n ({}), got {}",
                               fields->request.generate().num_samples, *best_of),
                   StatusCode::kUnsupported);
  }
  if (const auto keep = reader->Int("truncate_prompt_tokens", -1, kInt32Max)) {
    if (*keep == 0) {
      reader->RefuseValue("truncate_prompt_tokens", "-1 or at least 1", Json(0));
    }
    fields->truncate_prompt_tokens = static_cast<int32_t>(*keep);
    // An answer of this length leaves no room for a prompt token.
    if (*keep < 0 && fields->max_tokens && *fields->max_tokens >= model.max_model_len) {
      reader->Refuse(name, fmt::format("{} must be below this model's context length, {}, beside "
                                       "truncate_prompt_tokens: -1, got {}",
                                       name, model.max_model_len, *fields->max_tokens));
    }
  }
}

void ReadStreaming(FieldReader* reader, GenerationFields* fields) {
  fields->stream = reader->Bool("stream").value_or(false);
  if (const Json* options = reader->Object("stream_options")) {
    if (!fields->stream) {
      reader->Refuse("stream_options", "stream_options is allowed only with stream: true");
    }
    FieldReader inner(*options);
    fields->include_usage = inner.Bool("include_usage").value_or(false);
    fields->continuous_usage_stats = inner.Bool("continuous_usage_stats").value_or(false);
    if (!inner.status().ok()) {
      reader->Refuse("stream_options." + inner.status().param(), inner.status().message());
    }
  }
}

void ReadPromptLogprobs(FieldReader* reader, const ModelEntry& model, GenerationFields* fields) {
  const EngineLimits limits = model.engine->Limits();
  const auto count = reader->Int("prompt_logprobs", -1, limits.max_logprobs);
  const auto start = reader->Int("prompt_logprob_start", 0, kInt32Max);
  if (start && !count) {
    reader->Refuse("prompt_logprob_start",
                   "prompt_logprob_start is allowed only with prompt_logprobs");
  }
  if (!count) return;
  if (*count < 0 && limits.max_logprobs < limits.vocab_size) {
    reader->Refuse("prompt_logprobs",
                   fmt::format("prompt_logprobs: -1 asks for all {} tokens of the vocabulary, this "
                               "server gives at most {} (--max-logprobs)",
                               limits.vocab_size, limits.max_logprobs));
  }
  if (fields->stream) {
    reader->Refuse("prompt_logprobs", "prompt_logprobs is not allowed with stream: true");
  }
  fields->prompt_logprobs =
      *count < 0 ? limits.vocab_size : std::min(static_cast<int32_t>(*count), limits.vocab_size);
  fields->request.prompt_logprobs = {.num_top = *fields->prompt_logprobs,
                                     .start = static_cast<int32_t>(start.value_or(0))};
}

void ReadNamedLogprobs(FieldReader* reader, const ModelEntry& model, GenerateSpec* spec) {
  std::vector<TokenId>& ids = spec->logprob_token_ids;
  ids = reader->TokenIds("logprob_token_ids", model.engine->Limits().vocab_size);
  std::vector<TokenId> sorted = ids;
  std::ranges::sort(sorted);
  if (ids.size() > size_t{kMaxLabels} || std::ranges::adjacent_find(sorted) != sorted.end()) {
    reader->Refuse(
        "logprob_token_ids",
        fmt::format("logprob_token_ids must be at most {} token ids, each once", kMaxLabels));
  }
  // The request holds no number of likely tokens yet; ReadGenerationFields' caller sets it.
  if (!ids.empty()) spec->num_logprobs = 0;
}

// Reads the constraint that the answer is one of several texts. These texts alone decide where the
// answer ends.
void ReadChoiceConstraint(FieldReader* reader, const ModelEntry& model, GenerationFields* fields) {
  GenerateSpec& spec = fields->request.generate();
  spec.choices = ReadChoices(reader, model);
  if (spec.choices.empty()) return;
  spec.stop_token_ids.clear();
  fields->text.eos_token_ids = model.defaults.eos_token_ids;
  fields->text.include_stop_str = false;
  const int32_t longest = LongestChoice(fields->request);
  if (fields->max_tokens && *fields->max_tokens < longest) {
    const char* const name = LengthField(*reader);
    reader->Refuse(name, fmt::format("{} must be at least {}, which the longest of the choices "
                                     "takes, got {}",
                                     name, longest, *fields->max_tokens));
  }
}

// Reads the constraint of the answer, if there is one: a list of texts or a grammar.
void ReadConstraint(FieldReader* reader, const ModelEntry& model, GenerationFields* fields) {
  ReadChoiceConstraint(reader, model, fields);
  fields->constraint = ReadGrammarField(reader);
  const std::string& name = fields->constraint.name;
  if (!name.empty() && !fields->request.generate().choices.empty()) {
    reader->Refuse(name, name + " is not allowed beside a choice of texts");
  }
}

// Refuses unsupported fields that would change the answer: without them the answer would be wrong.
void RefuseUnsupported(FieldReader* reader) {
  for (const char* name : {"use_beam_search", "logits_processors", "functions"}) {
    const Json* value = reader->Find(name);
    if (value == nullptr || (value->is_boolean() && !value->get<bool>())) continue;
    reader->Refuse(name, fmt::format("{} is not supported by this version", name),
                   StatusCode::kUnsupported);
  }
}

}  // namespace

void Constrain(FieldReader* reader, const ModelEntry& model, GenerationFields* fields) {
  const GrammarField& field = fields->constraint;
  if (field.name.empty()) return;
  GenerateSpec& spec = fields->request.generate();
  const bool ignores_end = reader->Bool("ignore_eos").value_or(false);
  for (const auto& [name, given] :
       {std::pair{"min_tokens", spec.min_tokens > 0},
        std::pair{"allowed_token_ids", !spec.sampling.allowed_token_ids.empty()},
        std::pair{"ignore_eos", ignores_end}}) {
    if (given) reader->Refuse(name, fmt::format("{} is not allowed beside {}", name, field.name));
  }
  if (!reader->status().ok()) return;
  auto grammar = CompileGrammar(model, field);
  if (grammar.ok()) {
    spec.grammar = std::move(grammar).value();
  } else {
    reader->Refuse(field.name, grammar.status().message(), grammar.status().code());
  }
}

GenerationFields ReadGenerationFields(FieldReader* reader, const ModelEntry& model, uint64_t seed) {
  GenerationFields fields;
  RefuseUnsupported(reader);
  ReadSampling(reader, model, seed, &fields.request.generate().sampling);
  ReadStops(reader, model, &fields);
  ReadLengths(reader, model, &fields);
  ReadScheduling(reader, &fields.request);
  ReadStreaming(reader, &fields);
  ReadPromptLogprobs(reader, model, &fields);
  ReadNamedLogprobs(reader, model, &fields.request.generate());
  ReadConstraint(reader, model, &fields);
  fields.return_token_ids = reader->Bool("return_token_ids").value_or(false);
  fields.return_tokens_as_token_ids = reader->Bool("return_tokens_as_token_ids").value_or(false);
  return fields;
}

int32_t LongestChoice(const Request& request) {
  size_t longest = 0;
  for (const auto& choice : request.generate().choices) longest = std::max(longest, choice.size());
  return static_cast<int32_t>(longest);
}

size_t MaxPromptTokens(const ModelEntry& model, const GenerationFields& fields) {
  return fields.truncate_prompt_tokens ? 0 : static_cast<size_t>(std::max(1, model.max_model_len));
}

Status FitPrompt(const ModelEntry& model, const GenerationFields& fields, const std::string& param,
                 std::vector<TokenId>* prompt) {
  const int32_t answer = std::max(1, LongestChoice(fields.request));
  if (fields.truncate_prompt_tokens) {
    int32_t keep = *fields.truncate_prompt_tokens;
    if (keep < 0) {
      const int32_t wanted = std::max(answer, fields.max_tokens.value_or(0));
      keep = std::max(1, model.max_model_len - wanted);
    }
    if (std::ssize(*prompt) > keep) prompt->erase(prompt->begin(), prompt->end() - keep);
  }
  if (prompt->empty()) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} must have at least one token", param), param);
  }
  if (std::ssize(*prompt) + answer > model.max_model_len) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("This model's maximum context length is {} tokens; {} has {}, which "
                              "leaves no room for an answer",
                              model.max_model_len, param, prompt->size()),
                  param);
  }
  const auto& logprobs = fields.request.prompt_logprobs;
  if (logprobs && static_cast<size_t>(logprobs->start) >= prompt->size()) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("prompt_logprob_start is {}, must be below the number of the prompt's "
                    "tokens, {}",
                    logprobs->start, prompt->size()),
        "prompt_logprob_start");
  }
  return Status::Ok();
}

}  // namespace skein
