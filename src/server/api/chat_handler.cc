#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/generation/chat_call.h"
#include "server/generation/logprobs_json.h"
#include "server/generation/openai_format.h"
#include "server/generation/rendered_request.h"
#include "server/json/request_body.h"
#include "server/routes.h"

namespace skein {
namespace {

class ChatFormat final : public OpenAiFormat {
 public:
  ChatFormat(const ChatCall& call, uint64_t seed)
      : OpenAiFormat(call.spec.model->name(), MakeAnswerId("chatcmpl", seed), call.spec.fields),
        model_(call.spec.model),
        seed_(seed),
        logprobs_(call.spec.fields.request.generate().num_logprobs.has_value()),
        prompt_logprobs_(call.spec.fields.prompt_logprobs),
        return_token_ids_(call.spec.fields.return_token_ids),
        tokens_as_ids_(call.spec.fields.return_tokens_as_token_ids) {}

 protected:
  const char* ObjectName(bool chunk) const override {
    return chunk ? "chat.completion.chunk" : "chat.completion";
  }

  Json Choice(ChoiceState* state) const override {
    AnswerPiece piece = TakePiece(state);
    Json message;
    message["role"] = "assistant";
    const bool has_other = !piece.calls.empty() || !piece.reasoning.empty();
    message["content"] =
        piece.content.empty() && has_other ? Json(nullptr) : Json(std::move(piece.content));
    message["refusal"] = nullptr;
    if (!piece.reasoning.empty()) AddReasoning(piece.reasoning, &message);
    if (!piece.calls.empty()) {
      message["tool_calls"] = Json::array();
      for (const ToolCall& call : WholeCalls(piece.calls)) {
        message["tool_calls"].push_back(
            {{"id", ToolCallId(seed_, state->index, call.index, model_->tools.style)},
             {"type", "function"},
             {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
      }
    }
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
    const AnswerPiece piece = TakePiece(state);
    const bool reasons = !piece.reasoning.empty();
    if (tells_tokens || reasons || !piece.content.empty() || !piece.calls.empty() ||
        state->finish) {
      Json delta = Json::object();
      if (reasons) AddReasoning(piece.reasoning, &delta);
      if (!piece.content.empty() || (tells_tokens && !reasons)) delta["content"] = piece.content;
      for (const ToolCallDelta& call : piece.calls) {
        delta["tool_calls"].push_back(CallDelta(*state, call));
      }
      chunks->push_back(WithEnding(state, "delta", std::move(delta)));
    }
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
  // The name of DeepSeek, SGLang and llama.cpp, and vLLM's newer one.
  static void AddReasoning(const std::string& reasoning, Json* message) {
    (*message)["reasoning_content"] = reasoning;
    (*message)["reasoning"] = reasoning;
  }

  Json CallDelta(const ChoiceState& state, const ToolCallDelta& call) const {
    Json json;
    json["index"] = call.index;
    if (!call.name.empty()) {
      json["id"] = ToolCallId(seed_, state.index, call.index, model_->tools.style);
      json["type"] = "function";
      json["function"]["name"] = call.name;
    }
    json["function"]["arguments"] = call.arguments;
    return json;
  }

  Json WithEnding(ChoiceState* state, const char* name, Json content) const {
    Json json;
    json["index"] = state->index;
    json[name] = std::move(content);
    json["logprobs"] = nullptr;
    if (logprobs_)
      json["logprobs"] = ChatLogprobs(*model_->tokenizer, state->tokens, tokens_as_ids_);
    json["finish_reason"] = FinishReasonJson(*state);
    json["stop_reason"] = StopReasonJson(state->stop_reason);
    if (return_token_ids_) {
      json["token_ids"] = Json::array();
      for (const OutputToken& token : state->tokens) json["token_ids"].push_back(token.token);
    }
    return json;
  }

  const ModelEntry* model_;
  uint64_t seed_;  // of the ids of tool calls
  bool logprobs_;
  std::optional<int32_t> prompt_logprobs_;
  bool return_token_ids_;
  bool tokens_as_ids_;
};

Status StartChat(const ServerContext& context, const HttpRequest& request,
                 std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  SKEIN_ASSIGN_OR_RETURN(ChatCall call, ReadChatCall(context, body, ChatUse::kAnswer));
  auto format = std::make_unique<ChatFormat>(call, context.random_seed());
  StartChatCall(std::move(call), std::move(format), std::move(responder));
  return Status::Ok();
}

// Answers with a chat's prompt as the engine would get it; computes nothing.
Status RenderChatRequest(const ServerContext& context, const HttpRequest& request,
                         std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  SKEIN_ASSIGN_OR_RETURN(const ChatCall call, ReadChatCall(context, body, ChatUse::kPrompt));
  HttpResponse response;
  response.body =
      DumpJson(RenderedRequest(*call.spec.model, call.spec.fields, call.spec.prompts.front().ids,
                               MakeAnswerId("chatcmpl", context.random_seed())));
  responder->Send(std::move(response));
  return Status::Ok();
}

}  // namespace

void AddChatCompletionsRoute(Router* router) {
  router->AddWork("POST", "/v1/chat/completions", Starting(&StartChat), RouteClass::kGenerate,
                  &MayNeedGrammar);
  router->AddWork("POST", "/v1/chat/completions/render", Starting(&RenderChatRequest),
                  RouteClass::kOther, &MayNeedGrammar);
}

}  // namespace skein
