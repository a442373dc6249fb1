#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "server/generation/generation_call.h"
#include "server/generation/logprobs_json.h"
#include "server/json/api_error.h"
#include "server/json/request_body.h"
#include "server/routes.h"

namespace skein {
namespace {

class ChatFormat final : public AnswerFormat {
 public:
  ChatFormat(const ModelEntry* model, std::string id, const GenerationFields& fields)
      : model_(model),
        id_(std::move(id)),
        created_s_(UnixSeconds()),
        logprobs_(fields.request.generate().num_logprobs.has_value()),
        prompt_logprobs_(fields.prompt_logprobs),
        return_token_ids_(fields.return_token_ids),
        tokens_as_ids_(fields.return_tokens_as_token_ids) {}

  Json Envelope(bool chunk) const override {
    Json json;
    json["id"] = id_;
    json["object"] = chunk ? "chat.completion.chunk" : "chat.completion";
    json["created"] = created_s_;
    json["model"] = model_->name();
    return json;
  }

  Json Choice(ChoiceState* state) const override {
    Json message;
    message["role"] = "assistant";
    message["content"] = state->text;
    message["refusal"] = nullptr;
    return WithEnding(state, "message", std::move(message));
  }

  void AppendChunks(ChoiceState* state, std::vector<Json>* chunks) const override {
    if (!state->started) {
      state->started = true;
      Json first;
      first["index"] = state->index;
      first["delta"]["role"] = "assistant";
      first["delta"]["content"] = "";
      first["logprobs"] = nullptr;
      first["finish_reason"] = nullptr;
      if (return_token_ids_) first["prompt_token_ids"] = *state->prompt_ids;
      chunks->push_back(std::move(first));
    }
    const bool tells_tokens = (logprobs_ || return_token_ids_) && !state->tokens.empty();
    if (tells_tokens || !state->text.empty() || state->finish) {
      Json delta = Json::object();
      if (!state->text.empty() || tells_tokens) delta["content"] = state->text;
      chunks->push_back(WithEnding(state, "delta", std::move(delta)));
    }
    state->text.clear();
    state->tokens.clear();
  }

  void Decorate(const std::vector<ChoiceState>& choices, Json* answer) const override {
    const ChoiceState& choice = choices.front();
    if (return_token_ids_) (*answer)["prompt_token_ids"] = *choice.prompt_ids;
    if (prompt_logprobs_) {
      (*answer)["prompt_logprobs"] =
          PromptLogprobsJson(*model_->tokenizer, choice.prompt_ids->size(), *choice.prompt_logprobs,
                             *prompt_logprobs_);
    }
  }

 private:
  Json WithEnding(ChoiceState* state, const char* name, Json content) const {
    Json json;
    json["index"] = state->index;
    json[name] = std::move(content);
    json["logprobs"] = nullptr;
    if (logprobs_)
      json["logprobs"] = ChatLogprobs(*model_->tokenizer, state->tokens, tokens_as_ids_);
    json["finish_reason"] = FinishReasonJson(state->finish);
    json["stop_reason"] = StopReasonJson(state->stop_reason);
    if (return_token_ids_) {
      json["token_ids"] = Json::array();
      for (const OutputToken& token : state->tokens) json["token_ids"].push_back(token.token);
    }
    return json;
  }

  const ModelEntry* model_;
  std::string id_;
  int64_t created_s_;
  bool logprobs_;
  std::optional<int32_t> prompt_logprobs_;
  bool return_token_ids_;
  bool tokens_as_ids_;
};

// Reads logprobs (bool) together with top_logprobs (count).
void ReadLogprobs(FieldReader* reader, const ModelEntry& model, GenerateSpec* spec) {
  const bool logprobs = reader->Bool("logprobs").value_or(false);
  const auto top = reader->Int("top_logprobs", 0, model.engine->Limits().max_logprobs);
  if (top && *top > 0 && !logprobs) {
    reader->Refuse("top_logprobs", "top_logprobs is allowed only with logprobs: true");
  }
  if (logprobs) spec->num_logprobs = static_cast<int32_t>(top.value_or(0));
}

Status StartChat(const ServerContext& context, const HttpRequest& request,
                 std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(const ModelEntry* model, FindModel(*context.models, &reader));
  GenerationCall::Spec spec;
  spec.fields = ReadGenerationFields(&reader, *model, context.random_seed());
  GenerateSpec& generate = spec.fields.request.generate();
  ReadLogprobs(&reader, *model, &generate);
  if (reader.Bool("echo").value_or(false)) {
    reader.Refuse("echo", "echo is allowed only in /v1/completions", StatusCode::kUnsupported);
  }
  // The template contains the model's special tokens already.
  const bool add_special_tokens = reader.Bool("add_special_tokens").value_or(false);
  if (!reader.status().ok()) return reader.status();

  const MonotonicClock clock;
  const TimeUs begin_us = clock.NowUs();
  SKEIN_ASSIGN_OR_RETURN(const std::string text, RenderChat(*model, &reader));
  GenerationPrompt prompt;
  const Status encoded = EncodeChat(*model, text, add_special_tokens,
                                    MaxPromptTokens(*model, spec.fields), &prompt.ids);
  if (!encoded.ok()) return Status(encoded.code(), "messages: " + encoded.message(), "messages");
  SKEIN_RETURN_IF_ERROR(FitPrompt(*model, spec.fields, "messages", &prompt.ids));
  spec.tokenize_us = clock.NowUs() - begin_us;

  generate.max_tokens = spec.fields.max_tokens.value_or(model->Room(prompt.ids.size()));
  spec.prompts.push_back(std::move(prompt));
  spec.model = model;
  spec.metrics = context.metrics;
  spec.responder = std::move(responder);
  spec.format = std::make_unique<ChatFormat>(model, MakeAnswerId("chatcmpl", context.random_seed()),
                                             spec.fields);
  std::make_shared<GenerationCall>(std::move(spec))->Start();
  return Status::Ok();
}

}  // namespace

void AddChatCompletionsRoute(Router* router) {
  router->AddWork("POST", "/v1/chat/completions", Starting(&StartChat), RouteClass::kGenerate,
                  &MayNeedGrammar);
}

}  // namespace skein
