#include <spdlog/fmt/fmt.h>

#include <memory>
#include <utility>

#include "server/compat/compat_body.h"
#include "server/generation/chat_call.h"
#include "server/json/api_error.h"
#include "server/json/request_body.h"
#include "server/routes.h"

namespace skein {
namespace {

Json AnthropicError(const Status& status) {
  const char* type = "api_error";
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kUnsupported:
      type = "invalid_request_error";
      break;
    case StatusCode::kNotFound:
      type = "not_found_error";
      break;
    case StatusCode::kTooLarge:
      type = "request_too_large";
      break;
    case StatusCode::kResourceExhausted:
      type = "rate_limit_error";
      break;
    case StatusCode::kUnavailable:
      type = "overloaded_error";
      break;
    case StatusCode::kOk:
    case StatusCode::kInternal:
      break;
  }
  Json json;
  json["type"] = "error";
  json["error"]["type"] = type;
  json["error"]["message"] = status.message();
  return json;
}

HttpResponse AnthropicFailure(const Status& status) {
  HttpResponse response = ErrorResponse(status);
  response.body = DumpJson(AnthropicError(status));
  return response;
}

// Appends the chat messages that one message becomes. Each tool result becomes a message of its
// own.
Status AppendMessage(const Json& message, const std::string& param, Json* out) {
  if (!message.is_object()) return InvalidField(param, "an object");
  FieldReader reader(message);
  const std::string role = reader.String("role").value_or("");
  if (role != "user" && role != "assistant") {
    return InvalidField(param + ".role", "\"user\" or \"assistant\"");
  }
  Json texts = Json::array();
  Json calls = Json::array();
  std::string thinking;
  const Json* content = reader.Find("content");
  const Json none = Json::array();
  for (const Json& block : content != nullptr && content->is_array() ? *content : none) {
    const std::string type = block.is_object() ? StringMember(block, "type") : "";
    if (type == "tool_use") {
      calls.push_back(FunctionCall(StringMember(block, "id"), block.value("name", Json("")),
                                   block.value("input", Json::object())));
    } else if (type == "tool_result") {
      SKEIN_ASSIGN_OR_RETURN(std::string text, TextOfContent(block.value("content", Json(nullptr)),
                                                             param + ".content"));
      Json result = {{"role", "tool"}, {"content", std::move(text)}};
      result["tool_call_id"] = StringMember(block, "tool_use_id");
      out->push_back(std::move(result));
    } else if (type == "thinking") {
      thinking += StringMember(block, "thinking");
    } else if (type != "redacted_thinking") {
      texts.push_back(block);
    }
  }
  const bool is_list = content != nullptr && content->is_array();
  SKEIN_ASSIGN_OR_RETURN(std::string text, TextOfContent(is_list              ? texts
                                                         : content != nullptr ? *content
                                                                              : Json(nullptr),
                                                         param + ".content"));
  const bool has_others = !calls.empty() || !thinking.empty();
  if (is_list && texts.empty() && !has_others && !content->empty()) return Status::Ok();
  Json converted = {{"role", role}, {"content", std::move(text)}};
  if (!thinking.empty()) converted["reasoning_content"] = std::move(thinking);
  if (!calls.empty()) converted["tool_calls"] = std::move(calls);
  out->push_back(std::move(converted));
  return Status::Ok();
}

Status ReadAnthropicMessages(Json* body) {
  Json messages = Json::array();
  if (const auto system = body->find("system"); system != body->end()) {
    SKEIN_ASSIGN_OR_RETURN(std::string text, TextOfContent(*system, "system"));
    if (!text.empty()) messages.push_back({{"role", "system"}, {"content", std::move(text)}});
    body->erase("system");
  }
  const auto given = body->find("messages");
  if (given == body->end() || !given->is_array() || given->empty()) {
    return InvalidField("messages", "an array of at least one message");
  }
  for (size_t i = 0; i < given->size(); ++i) {
    SKEIN_RETURN_IF_ERROR(AppendMessage((*given)[i], fmt::format("messages[{}]", i), &messages));
  }
  *given = std::move(messages);
  return Status::Ok();
}

Status ReadAnthropicTools(Json* body) {
  if (const auto tools = body->find("tools"); tools != body->end() && tools->is_array()) {
    Json converted = Json::array();
    for (size_t i = 0; i < tools->size(); ++i) {
      const Json& tool = (*tools)[i];
      if (!tool.is_object() || !tool.contains("input_schema")) {
        return InvalidField(fmt::format("tools[{}]", i), "an object with name and input_schema");
      }
      converted.push_back(FunctionTool(tool.value("name", Json(nullptr)),
                                       tool.value("description", Json(nullptr)),
                                       tool["input_schema"]));
    }
    *tools = std::move(converted);
  }
  const auto choice = body->find("tool_choice");
  if (choice == body->end() || choice->is_null()) return Status::Ok();
  if (!choice->is_object()) return InvalidField("tool_choice", "an object with a type");
  if (choice->value("disable_parallel_tool_use", Json(false)) == true) {
    (*body)["parallel_tool_calls"] = false;
  }
  const Json chosen = (*body)["tool_choice"];
  const std::string type = StringMember(chosen, "type");
  if (type == "tool") {
    (*body)["tool_choice"] = {{"type", "function"},
                              {"function", {{"name", StringMember(chosen, "name")}}}};
  } else if (type == "auto" || type == "any" || type == "none") {
    (*body)["tool_choice"] = type;
  } else {
    return InvalidField("tool_choice.type", "auto, any, tool or none");
  }
  return Status::Ok();
}

// Turns `thinking` into the template's variable. Without it the model's template decides. The
// budget is not enforced: the thought counts as part of max_tokens.
Status ReadAnthropicThinking(Json* body) {
  const auto thinking = body->find("thinking");
  if (thinking == body->end() || thinking->is_null()) return Status::Ok();
  const std::string type = thinking->is_object() ? StringMember(*thinking, "type") : "";
  if (type != "enabled" && type != "adaptive" && type != "between_tools" && type != "disabled") {
    return InvalidField("thinking.type", "enabled, adaptive, between_tools or disabled");
  }
  SetThinking(type != "disabled", body);
  return Status::Ok();
}

// Turns the request into a chat's body.
Status ToChatBody(Json* body) {
  SKEIN_RETURN_IF_ERROR(ReadAnthropicThinking(body));
  SKEIN_RETURN_IF_ERROR(ReadAnthropicMessages(body));
  SKEIN_RETURN_IF_ERROR(ReadAnthropicTools(body));
  MoveMember("stop_sequences", "stop", body);
  if (const auto output = body->find("output_config");
      output != body->end() && output->is_object()) {
    Json format = output->value("format", Json(nullptr));
    if (!format.is_null()) (*body)["output_format"] = std::move(format);
  }
  if (const auto format = body->find("output_format");
      format != body->end() && format->is_object()) {
    if (StringMember(*format, "type") != "json_schema") {
      return InvalidField("output_format.type", "json_schema");
    }
    Json schema;
    schema["schema"] = format->value("schema", Json(nullptr));
    (*body)["response_format"] = {{"type", "json_schema"}, {"json_schema", std::move(schema)}};
  }
  if (const auto metadata = body->find("metadata");
      metadata != body->end() && metadata->is_object()) {
    const Json user = metadata->value("user_id", Json(nullptr));
    if (user.is_string()) (*body)["user"] = user;
  }
  return Status::Ok();
}

Json AnthropicUsage(const Usage& usage) {
  Json json;
  json["input_tokens"] = usage.prompt_tokens - usage.cached_tokens;
  json["cache_creation_input_tokens"] = 0;
  json["cache_read_input_tokens"] = usage.cached_tokens;
  json["output_tokens"] = usage.completion_tokens;
  return json;
}

class AnthropicFormat final : public AnswerFormat {
 public:
  AnthropicFormat(const ChatCall& call, uint64_t seed)
      : model_(call.spec.model), seed_(seed), id_(fmt::format("msg_{:016x}", seed)) {}

  Json Answer(std::vector<ChoiceState>* choices, const Usage& usage) override {
    ChoiceState& state = choices->front();
    const AnswerPiece piece = TakePiece(&state);
    Json answer = Envelope(usage);
    if (!piece.reasoning.empty()) answer["content"].push_back(ThinkingBlock(piece.reasoning));
    if (!piece.content.empty() || (piece.calls.empty() && piece.reasoning.empty())) {
      answer["content"].push_back({{"type", "text"}, {"text", piece.content}});
    }
    for (const ToolCall& call : WholeCalls(piece.calls)) {
      answer["content"].push_back(
          CallBlock(call.index, call.name, ArgumentsObject(call.arguments)));
    }
    SetStop(state, &answer);
    return answer;
  }

  void AppendEvents(ChoiceState* state, const std::function<Usage()>& usage,
                    std::string* events) override {
    if (!state->started) {
      state->started = true;
      Json start = {{"type", "message_start"}};
      start["message"] = Envelope(usage());
      *events += Event(start, "message_start");
    }
    const AnswerPiece piece = TakePiece(state);
    state->tokens.clear();
    if (!piece.reasoning.empty()) {
      if (open_ != "thinking") OpenBlock(ThinkingBlock(""), events);
      Delta({{"type", "thinking_delta"}, {"thinking", piece.reasoning}}, events);
    }
    if (!piece.content.empty()) {
      if (open_ != "text") OpenBlock({{"type", "text"}, {"text", ""}}, events);
      Delta({{"type", "text_delta"}, {"text", piece.content}}, events);
    }
    for (const ToolCallDelta& call : piece.calls) {
      if (!call.name.empty()) OpenBlock(CallBlock(call.index, call.name, Json::object()), events);
      if (call.arguments.empty()) continue;
      Delta({{"type", "input_json_delta"}, {"partial_json", call.arguments}}, events);
    }
    if (!state->finish) return;
    // An answer has at least one block.
    if (block_ < 0) OpenBlock({{"type", "text"}, {"text", ""}}, events);
    CloseBlock(events);
    SetStop(*state, &ending_);
  }

  void AppendEnd(const Usage& usage, std::string* events) override {
    Json delta = {{"type", "message_delta"}};
    delta["delta"] = ending_;
    delta["usage"] = AnthropicUsage(usage);
    *events += Event(delta, "message_delta");
    *events += Event({{"type", "message_stop"}}, "message_stop");
  }

  HttpResponse Failure(const Status& status) const override { return AnthropicFailure(status); }
  std::string FailureEvents(const Status& status) const override {
    return Event(AnthropicError(status), "error");
  }

 private:
  Json Envelope(const Usage& usage) const {
    Json json;
    json["id"] = id_;
    json["type"] = "message";
    json["role"] = "assistant";
    json["model"] = model_->name();
    json["content"] = Json::array();
    json["stop_reason"] = nullptr;
    json["stop_sequence"] = nullptr;
    json["usage"] = AnthropicUsage(usage);
    return json;
  }

  Json CallBlock(int32_t index, const std::string& name, Json input) const {
    Json block;
    block["type"] = "tool_use";
    block["id"] = ToolCallId(seed_, 0, index, model_->tools.style);
    block["name"] = name;
    block["input"] = std::move(input);
    return block;
  }

  // Signatures of thoughts are Anthropic's own. Clients expect the member.
  static Json ThinkingBlock(const std::string& thinking) {
    Json block = {{"type", "thinking"}};
    block["thinking"] = thinking;
    block["signature"] = "";
    return block;
  }

  static void SetStop(const ChoiceState& state, Json* json) {
    const auto* text = std::get_if<std::string>(&state.stop_reason);
    const bool calls = HasCalls(state);
    (*json)["stop_reason"] = state.finish == FinishReason::kLength ? "max_tokens"
                             : text != nullptr                     ? "stop_sequence"
                             : calls                               ? "tool_use"
                                                                   : "end_turn";
    (*json)["stop_sequence"] = text != nullptr ? Json(*text) : Json(nullptr);
  }

  void OpenBlock(Json block, std::string* events) {
    CloseBlock(events);
    open_ = block["type"].get<std::string>();
    Json start = {{"type", "content_block_start"}, {"index", ++block_}};
    start["content_block"] = std::move(block);
    *events += Event(start, "content_block_start");
  }

  void CloseBlock(std::string* events) {
    if (open_.empty()) return;
    if (std::exchange(open_, "") == "thinking") {
      Delta({{"type", "signature_delta"}, {"signature", ""}}, events);
    }
    *events += Event({{"type", "content_block_stop"}, {"index", block_}}, "content_block_stop");
  }

  void Delta(Json delta, std::string* events) {
    Json json = {{"type", "content_block_delta"}, {"index", block_}};
    json["delta"] = std::move(delta);
    *events += Event(json, "content_block_delta");
  }

  const ModelEntry* model_;
  uint64_t seed_;
  std::string id_;
  int32_t block_ = -1;  // the last block's index
  std::string open_;    // the type of the block that is open; empty: none
  Json ending_;
};

Status StartMessages(const ServerContext& context, const HttpRequest& request,
                     std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(Json body, ParseBody(context, request));
  if (!body.contains("max_tokens")) return InvalidField("max_tokens", "given");
  SKEIN_RETURN_IF_ERROR(ToChatBody(&body));
  body.erase("n");
  SKEIN_ASSIGN_OR_RETURN(ChatCall call, ReadChatCall(context, body, ChatUse::kAnswer));
  auto format = std::make_unique<AnthropicFormat>(call, context.random_seed());
  StartChatCall(std::move(call), std::move(format), std::move(responder));
  return Status::Ok();
}

Status CountTokens(const ServerContext& context, const HttpRequest& request,
                   std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(Json body, ParseBody(context, request));
  SKEIN_RETURN_IF_ERROR(ToChatBody(&body));
  body["max_tokens"] = 1;
  body.erase("tool_choice");
  SKEIN_ASSIGN_OR_RETURN(const ChatCall call, ReadChatCall(context, body, ChatUse::kPrompt));
  HttpResponse response;
  response.body = DumpJson({{"input_tokens", call.spec.prompts.front().ids.size()}});
  responder->Send(std::move(response));
  return Status::Ok();
}

}  // namespace

void AddAnthropicRoutes(Router* router) {
  router->AddWork("POST", "/v1/messages", Starting(&StartMessages, &AnthropicFailure),
                  RouteClass::kGenerate, &MayNeedGrammar);
  router->AddWork("POST", "/v1/messages/count_tokens", Starting(&CountTokens, &AnthropicFailure),
                  RouteClass::kOther);
}

}  // namespace skein
