#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "server/early_check.h"
#include "server/generation/generation_call.h"
#include "server/generation/logprobs_json.h"
#include "server/generation/openai_format.h"
#include "server/generation/rendered_request.h"
#include "server/json/api_error.h"
#include "server/json/request_body.h"
#include "server/prompt_text.h"
#include "server/routes.h"

namespace skein {
namespace {

constexpr int32_t kDefaultMaxTokens = 16;
constexpr size_t kPromptsMax = 1024;

class CompletionFormat final : public OpenAiFormat {
 public:
  CompletionFormat(const ModelEntry* model, std::string id, bool echo,
                   const GenerationFields& fields)
      : OpenAiFormat(model->name(), std::move(id), fields),
        model_(model),
        echo_(echo),
        logprobs_(fields.request.generate().num_logprobs),
        prompt_logprobs_(fields.prompt_logprobs),
        return_token_ids_(fields.return_token_ids),
        tokens_as_ids_(fields.return_tokens_as_token_ids),
        skip_special_tokens_(fields.text.skip_special_tokens) {}

 protected:
  const char* ObjectName(bool) const override { return "text_completion"; }

  Json Choice(ChoiceState* state) const override {
    Json json;
    json["index"] = state->index;
    json["text"] = state->text;
    json["logprobs"] = nullptr;
    if (logprobs_) {
      const bool with_prompt = echo_ && !state->started;
      const EchoedPrompt prompt = {*state->prompt_ids, *state->prompt_logprobs, state->echo};
      json["logprobs"] =
          CompletionLogprobs(*model_->tokenizer, with_prompt ? &prompt : nullptr, state->tokens,
                             *logprobs_, tokens_as_ids_, skip_special_tokens_, &state->text_offset);
    }
    if (prompt_logprobs_) {
      json["prompt_logprobs"] = PromptLogprobsJson(*model_->tokenizer, state->prompt_ids->size(),
                                                   *state->prompt_logprobs, *prompt_logprobs_);
    }
    json["finish_reason"] = FinishReasonJson(*state);
    json["stop_reason"] = StopReasonJson(state->stop_reason);
    if (return_token_ids_) {
      if (!state->started) json["prompt_token_ids"] = *state->prompt_ids;
      json["token_ids"] = Json::array();
      for (const OutputToken& token : state->tokens) json["token_ids"].push_back(token.token);
    }
    return json;
  }

  void AppendChunks(ChoiceState* state, std::vector<Json>* chunks) const override {
    const bool tells_tokens = (logprobs_ || return_token_ids_) && !state->tokens.empty();
    if (!tells_tokens && state->text.empty() && !state->finish) {
      state->tokens.clear();
      return;
    }
    chunks->push_back(Choice(state));
    state->started = true;
    state->text.clear();
    state->tokens.clear();
  }

 private:
  const ModelEntry* model_;
  bool echo_;
  std::optional<int32_t> logprobs_;
  std::optional<int32_t> prompt_logprobs_;
  bool return_token_ids_;
  bool tokens_as_ids_;
  bool skip_special_tokens_;
};

struct CompletionInput {
  GenerationFields fields;
  bool echo = false;
  bool add_special_tokens = true;
};

// Reads one prompt of `field`: a string or an array of token ids.
Result<GenerationPrompt> ReadPrompt(const ModelEntry& model, const CompletionInput& input,
                                    const std::string& field, const Json& value) {
  GenerationPrompt prompt;
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const Status encoded = EncodeRawPrompt(model, text, input.add_special_tokens,
                                           MaxPromptTokens(model, input.fields), &prompt.ids);
    if (!encoded.ok()) return Status(encoded.code(), field + ": " + encoded.message(), field);
    if (input.echo) prompt.echo = text;
  } else if (IsTokenIds(value)) {
    Json holder;
    holder[field] = value;
    FieldReader reader(holder);
    prompt.ids = reader.TokenIds(field, model.engine->Limits().vocab_size);
    if (!reader.status().ok()) return reader.status();
    if (input.echo) {
      prompt.echo = model.tokenizer->Decode(prompt.ids, input.fields.text.skip_special_tokens);
    }
  } else {
    const Json holder;
    FieldReader reader(holder);
    reader.RefuseValue(field,
                       "a string, an array of strings, an array of token ids or an array of arrays "
                       "of token ids, none of them empty",
                       value);
    return reader.status();
  }
  const size_t num_given = prompt.ids.size();
  SKEIN_RETURN_IF_ERROR(FitPrompt(model, input.fields, field, &prompt.ids));
  if (input.echo && prompt.ids.size() < num_given) {
    prompt.echo = model.tokenizer->Decode(prompt.ids, input.fields.text.skip_special_tokens);
  }
  return prompt;
}

// A request with more prompts than the queue holds would get 429 at every attempt.
size_t MaxPrompts(const ModelEntry& model) {
  return std::min(kPromptsMax, static_cast<size_t>(model.engine->Limits().max_queued_requests));
}

Result<std::vector<GenerationPrompt>> ReadPrompts(const ModelEntry& model,
                                                  const CompletionInput& input,
                                                  FieldReader* reader) {
  const Json* value = reader->Find("prompt");
  if (value == nullptr) {
    return Status(StatusCode::kInvalidArgument, "prompt must be given", "prompt");
  }
  std::vector<GenerationPrompt> prompts;
  if (!value->is_array() || IsTokenIds(*value)) {
    SKEIN_ASSIGN_OR_RETURN(prompts.emplace_back(), ReadPrompt(model, input, "prompt", *value));
    return prompts;
  }
  const size_t prompts_max = MaxPrompts(model);
  if (value->empty() || value->size() > prompts_max) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("prompt must hold 1 to {} prompts, got {}", prompts_max, value->size()),
        "prompt");
  }
  for (size_t i = 0; i < value->size(); ++i) {
    SKEIN_ASSIGN_OR_RETURN(prompts.emplace_back(),
                           ReadPrompt(model, input, fmt::format("prompt[{}]", i), (*value)[i]));
  }
  return prompts;
}

// Checks the memory of the lists in `spec`: each prompt becomes a request with its own copy of
// them.
Status CheckCopies(const GenerateSpec& spec, size_t num_prompts) {
  constexpr size_t kMaxBytes = 64 << 20;
  size_t ids = spec.sampling.allowed_token_ids.size() + spec.stop_token_ids.size() +
               spec.logprob_token_ids.size() + 2 * spec.sampling.logit_bias.size();
  for (const auto& choice : spec.choices) ids += choice.size();
  if (ids * sizeof(TokenId) <= kMaxBytes / num_prompts) return Status::Ok();
  return {StatusCode::kInvalidArgument,
          fmt::format("prompt holds {} prompts, must hold at most {} beside lists of {} tokens "
                      "(allowed_token_ids, logit_bias, choices)",
                      num_prompts, kMaxBytes / (ids * sizeof(TokenId)), ids),
          "prompt"};
}

CompletionInput ReadCompletion(FieldReader* reader, const ModelEntry& model, uint64_t seed) {
  CompletionInput input;
  input.fields = ReadGenerationFields(reader, model, seed);
  Constrain(reader, model, &input.fields);
  GenerateSpec& spec = input.fields.request.generate();
  spec.max_tokens = input.fields.max_tokens.value_or(
      std::max(kDefaultMaxTokens, LongestChoice(input.fields.request)));
  const auto logprobs = reader->Int("logprobs", 0, model.engine->Limits().max_logprobs);
  if (logprobs) spec.num_logprobs = static_cast<int32_t>(*logprobs);
  input.add_special_tokens = reader->Bool("add_special_tokens").value_or(true);
  input.echo = reader->Bool("echo").value_or(false);
  if (input.echo && spec.num_logprobs) {
    // The answer repeats the log-probabilities of the whole prompt.
    auto& of_prompt = input.fields.request.prompt_logprobs;
    if (of_prompt && of_prompt->start > 0) {
      reader->Refuse("prompt_logprob_start",
                     fmt::format("prompt_logprob_start must be 0 beside echo with logprobs, got {}",
                                 of_prompt->start));
    }
    const int32_t others = input.fields.prompt_logprobs.value_or(0);
    of_prompt = {.num_top = std::max(*spec.num_logprobs, others)};
  }
  if (!reader->String("suffix").value_or("").empty()) {
    reader->Refuse("suffix", "suffix is not supported by this version", StatusCode::kUnsupported);
  }
  return input;
}

Status StartCompletion(const ServerContext& context, const HttpRequest& request,
                       std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(const ModelEntry* model, FindModel(*context.models, &reader));
  CompletionInput input = ReadCompletion(&reader, *model, context.random_seed());
  if (!reader.status().ok()) return reader.status();

  const MonotonicClock clock;
  const TimeUs begin_us = clock.NowUs();
  GenerationCall::Spec spec;
  if (AreTexts(reader.Find("prompt"), MaxPrompts(*model))) {
    SKEIN_RETURN_IF_ERROR(CheckGenerationWait(context, *model, input.fields.request));
  }
  SKEIN_ASSIGN_OR_RETURN(spec.prompts, ReadPrompts(*model, input, &reader));
  SKEIN_RETURN_IF_ERROR(CheckCopies(input.fields.request.generate(), spec.prompts.size()));
  spec.tokenize_us = clock.NowUs() - begin_us;
  spec.model = model;
  spec.metrics = context.metrics;
  spec.charge = context.charge;
  spec.responder = std::move(responder);
  spec.format = std::make_unique<CompletionFormat>(
      model, MakeAnswerId("cmpl", context.random_seed()), input.echo, input.fields);
  spec.fields = std::move(input.fields);
  std::make_shared<GenerationCall>(std::move(spec))->Start();
  return Status::Ok();
}

// Answers with the prompts of a request as the engine would get them, one entry for each; computes
// nothing.
Status RenderCompletion(const ServerContext& context, const HttpRequest& request,
                        std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(const ModelEntry* model, FindModel(*context.models, &reader));
  const CompletionInput input = ReadCompletion(&reader, *model, context.random_seed());
  if (!reader.status().ok()) return reader.status();
  SKEIN_ASSIGN_OR_RETURN(const auto prompts, ReadPrompts(*model, input, &reader));
  Json answer = Json::array();
  for (const GenerationPrompt& prompt : prompts) {
    answer.push_back(RenderedRequest(*model, input.fields, prompt.ids,
                                     MakeAnswerId("cmpl", context.random_seed())));
  }
  HttpResponse response;
  response.body = DumpJson(answer);
  responder->Send(std::move(response));
  return Status::Ok();
}

}  // namespace

void AddCompletionsRoute(Router* router) {
  router->AddWork("POST", "/v1/completions", Starting(&StartCompletion), RouteClass::kGenerate,
                  &MayNeedGrammar);
  router->AddWork("POST", "/v1/completions/render", Starting(&RenderCompletion), RouteClass::kOther,
                  &MayNeedGrammar);
}

}  // namespace skein
