#include <spdlog/fmt/fmt.h>

#include <memory>
#include <utility>

#include "server/compat/compat_body.h"
#include "server/generation/chat_call.h"
#include "server/json/request_body.h"
#include "server/routes.h"

namespace skein {
namespace {

// The text of an item of type reasoning.
std::string ReasoningText(const Json& item) {
  std::string text;
  for (const Json& part : item.value("content", Json::array())) {
    if (part.is_object()) text += StringMember(part, "text");
  }
  return text;
}

// Moves the reasoning into the assistant's message.
void TakeReasoning(std::string* reasoning, Json* message) {
  if (reasoning->empty()) return;
  (*message)["reasoning_content"] =
      message->value("reasoning_content", "") + std::exchange(*reasoning, {});
}

// Appends the message that one item of `input` becomes. A tool call joins the assistant's message
// before it. `*reasoning` is the reasoning before the next message of the assistant.
Status AppendItem(const Json& item, const std::string& param, std::string* reasoning,
                  Json* messages) {
  if (!item.is_object()) return InvalidField(param, "an object");
  const std::string type = item.contains("type") ? StringMember(item, "type") : "message";
  if (type == "reasoning") {
    *reasoning += ReasoningText(item);
    return Status::Ok();
  }
  if (type == "function_call") {
    if (messages->empty() || messages->back()["role"] != "assistant") {
      messages->push_back({{"role", "assistant"}, {"content", ""}});
    }
    TakeReasoning(reasoning, &messages->back());
    messages->back()["tool_calls"].push_back(FunctionCall(StringMember(item, "call_id"),
                                                          item.value("name", Json("")),
                                                          item.value("arguments", Json("{}"))));
    return Status::Ok();
  }
  if (type == "function_call_output") {
    SKEIN_ASSIGN_OR_RETURN(std::string text,
                           TextOfContent(item.value("output", Json(nullptr)), param + ".output"));
    Json message = {{"role", "tool"}, {"content", std::move(text)}};
    message["tool_call_id"] = StringMember(item, "call_id");
    messages->push_back(std::move(message));
    return Status::Ok();
  }
  const std::string role = StringMember(item, "role");
  if (type != "message" || role.empty()) {
    return InvalidField(param + ".type",
                        "message, function_call, function_call_output or reasoning");
  }
  SKEIN_ASSIGN_OR_RETURN(std::string text,
                         TextOfContent(item.value("content", Json(nullptr)), param + ".content"));
  messages->push_back(
      {{"role", role == "developer" ? "system" : role}, {"content", std::move(text)}});
  if (role == "assistant") {
    TakeReasoning(reasoning, &messages->back());
  } else {
    reasoning->clear();  // it belonged to no answer
  }
  return Status::Ok();
}

Status ReadResponseInput(Json* body) {
  Json messages = Json::array();
  if (const std::string text = StringMember(*body, "instructions"); !text.empty()) {
    messages.push_back({{"role", "system"}, {"content", text}});
  }
  const auto input = body->find("input");
  if (input != body->end() && input->is_string()) {
    messages.push_back({{"role", "user"}, {"content", *input}});
  } else if (input != body->end() && input->is_array() && !input->empty()) {
    std::string reasoning;
    for (size_t i = 0; i < input->size(); ++i) {
      SKEIN_RETURN_IF_ERROR(
          AppendItem((*input)[i], fmt::format("input[{}]", i), &reasoning, &messages));
    }
  } else {
    return InvalidField("input", "a string or an array of items");
  }
  (*body)["messages"] = std::move(messages);
  return Status::Ok();
}

// Turns the flat form of `tools` and `text.format` into the form of chat completions.
Status ReadToolsAndFormat(Json* body) {
  if (const auto tools = body->find("tools"); tools != body->end() && tools->is_array()) {
    Json converted = Json::array();
    for (size_t i = 0; i < tools->size(); ++i) {
      const Json& tool = (*tools)[i];
      if (!tool.is_object() || StringMember(tool, "type") != "function") {
        return Status(
            StatusCode::kUnsupported,
            fmt::format("tools[{}].type must be function: the server has no tools of its own", i),
            fmt::format("tools[{}].type", i));
      }
      converted.push_back(FunctionTool(tool.value("name", Json(nullptr)),
                                       tool.value("description", Json(nullptr)),
                                       tool.value("parameters", Json(nullptr))));
    }
    (*body)["tools"] = std::move(converted);
  }
  const auto text = body->find("text");
  if (text == body->end() || !text->is_object() || !text->contains("format")) return Status::Ok();
  const Json format = (*text)["format"];
  if (!format.is_object()) return InvalidField("text.format", "an object");
  if (StringMember(format, "type") == "json_schema") {
    (*body)["response_format"] = {{"type", "json_schema"}, {"json_schema", format}};
  } else {
    (*body)["response_format"] = format;
  }
  return Status::Ok();
}

// Turns `reasoning` into the field of chat completions.
Status ReadReasoning(Json* body) {
  const auto reasoning = body->find("reasoning");
  if (reasoning == body->end() || reasoning->is_null()) return Status::Ok();
  if (!reasoning->is_object()) return InvalidField("reasoning", "an object");
  Json effort = reasoning->value("effort", Json(nullptr));
  if (!effort.is_null()) (*body)["reasoning_effort"] = std::move(effort);
  return Status::Ok();
}

Status RefuseState(const Json& body) {
  for (const char* name : {"previous_response_id", "conversation", "prompt"}) {
    const auto found = body.find(name);
    if (found == body.end() || found->is_null()) continue;
    return Status(StatusCode::kUnsupported,
                  fmt::format("{} is not supported: the server keeps no conversations, send all "
                              "of it as input",
                              name),
                  name);
  }
  if (body.value("background", Json(false)) == true) {
    return Status(StatusCode::kUnsupported, "background is not supported", "background");
  }
  return Status::Ok();
}

class ResponsesFormat final : public AnswerFormat {
 public:
  // `request` is the client's body; the answer repeats parts of it.
  ResponsesFormat(const ChatCall& call, uint64_t seed, const Json& request)
      : model_(call.spec.model), seed_(seed) {
    base_["id"] = fmt::format("resp_{:016x}", seed);
    base_["object"] = "response";
    base_["created_at"] = UnixSeconds();
    base_["status"] = "in_progress";
    base_["background"] = false;
    base_["error"] = nullptr;
    base_["incomplete_details"] = nullptr;
    base_["instructions"] = request.value("instructions", Json(nullptr));
    base_["max_output_tokens"] = request.value("max_output_tokens", Json(nullptr));
    base_["metadata"] = request.value("metadata", Json::object());
    base_["model"] = model_->name();
    base_["output"] = Json::array();
    base_["parallel_tool_calls"] = request.value("parallel_tool_calls", Json(true));
    base_["previous_response_id"] = nullptr;
    const auto reasoning = request.find("reasoning");
    base_["reasoning"] = {{"effort", nullptr}, {"summary", nullptr}};
    if (reasoning != request.end() && reasoning->is_object()) {
      base_["reasoning"]["effort"] = reasoning->value("effort", Json(nullptr));
    }
    base_["store"] = false;
    base_["temperature"] = call.spec.fields.request.generate().sampling.temperature;
    base_["text"] = request.value("text", Json({{"format", {{"type", "text"}}}}));
    base_["tool_choice"] = request.value("tool_choice", Json("auto"));
    base_["tools"] = request.value("tools", Json::array());
    base_["top_p"] = call.spec.fields.request.generate().sampling.top_p;
    base_["truncation"] = "disabled";
    base_["usage"] = nullptr;
    base_["user"] = request.value("user", Json(nullptr));
  }

  Json Answer(std::vector<ChoiceState>* choices, const Usage& usage) override {
    std::string events;
    ChoiceState& state = choices->front();
    state.started = true;
    Advance(&state, &events);
    return Response(usage);
  }

  void AppendEvents(ChoiceState* state, const std::function<Usage()>&,
                    std::string* events) override {
    if (!state->started) {
      state->started = true;
      for (const char* type : {"response.created", "response.in_progress"}) {
        Send(type, {{"response", base_}}, events);
      }
    }
    Advance(state, events);
  }

  void AppendEnd(const Usage& usage, std::string* events) override {
    const Json response = Response(usage);
    const bool complete = response["status"] == "completed";
    Send(complete ? "response.completed" : "response.incomplete", {{"response", response}}, events);
  }

  std::string FailureEvents(const Status& status) const override {
    Json error = {{"type", "error"}, {"code", "server_error"}, {"param", nullptr}};
    error["message"] = status.message();
    error["sequence_number"] = sequence_;
    return Event(error, "error");
  }

 private:
  // Moves the state's new text into items and appends the matching events.
  void Advance(ChoiceState* state, std::string* events) {
    const AnswerPiece piece = TakePiece(state);
    state->tokens.clear();
    if (!piece.reasoning.empty()) {
      if (!IsOpen("reasoning")) OpenReasoning(events);
      Send("response.reasoning_text.delta", AddText(piece.reasoning), events);
    }
    if (!piece.content.empty()) {
      if (!IsOpen("message")) OpenMessage(events);
      Json delta = AddText(piece.content);
      delta["logprobs"] = Json::array();
      Send("response.output_text.delta", std::move(delta), events);
    }
    for (const ToolCallDelta& call : piece.calls) {
      if (!call.name.empty()) OpenCall(call, events);
      if (call.arguments.empty()) continue;
      item_["arguments"].get_ref<std::string&>() += call.arguments;
      Json delta = At();
      delta["delta"] = call.arguments;
      Send("response.function_call_arguments.delta", std::move(delta), events);
    }
    if (!state->finish) return;
    incomplete_ = state->finish == FinishReason::kLength;
    if (item_.is_null() && output_.empty()) OpenMessage(events);
    Close(events);
  }

  // Adds to the text of the open item; returns the event's delta.
  Json AddText(const std::string& text) {
    item_["content"][0]["text"].get_ref<std::string&>() += text;
    Json delta = At();
    delta["content_index"] = 0;
    delta["delta"] = text;
    return delta;
  }

  Json Response(const Usage& usage) const {
    Json json = base_;
    json["status"] = incomplete_ ? "incomplete" : "completed";
    if (incomplete_) json["incomplete_details"] = {{"reason", "max_output_tokens"}};
    json["output"] = output_;
    json["usage"]["input_tokens"] = usage.prompt_tokens;
    json["usage"]["input_tokens_details"]["cached_tokens"] = usage.cached_tokens;
    json["usage"]["output_tokens"] = usage.completion_tokens;
    json["usage"]["output_tokens_details"]["reasoning_tokens"] = usage.reasoning_tokens.value_or(0);
    json["usage"]["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
    return json;
  }

  bool IsOpen(const char* type) const { return item_.is_object() && item_["type"] == type; }

  Json At() const {
    return {{"item_id", item_["id"]}, {"output_index", static_cast<int64_t>(output_.size())}};
  }

  void Open(Json item, std::string* events) {
    Close(events);
    item_ = std::move(item);
    Json added;
    added["output_index"] = output_.size();
    added["item"] = item_;
    Send("response.output_item.added", std::move(added), events);
  }

  void OpenMessage(std::string* events) {
    Json item;
    item["type"] = "message";
    item["id"] = fmt::format("msg_{:016x}_{}", seed_, output_.size());
    item["status"] = "in_progress";
    item["role"] = "assistant";
    item["content"] = Json::array();
    Open(std::move(item), events);
    OpenPart(Part(), events);
  }

  void OpenReasoning(std::string* events) {
    Json item;
    item["type"] = "reasoning";
    item["id"] = fmt::format("rs_{:016x}_{}", seed_, output_.size());
    item["status"] = "in_progress";
    item["summary"] = Json::array();
    item["content"] = Json::array();
    Open(std::move(item), events);
    OpenPart({{"type", "reasoning_text"}, {"text", ""}}, events);
  }

  void OpenPart(const Json& part, std::string* events) {
    item_["content"].push_back(part);
    Json added = At();
    added["content_index"] = 0;
    added["part"] = part;
    Send("response.content_part.added", std::move(added), events);
  }

  static Json Part() {
    Json part;
    part["type"] = "output_text";
    part["text"] = "";
    part["annotations"] = Json::array();
    part["logprobs"] = Json::array();
    return part;
  }

  void OpenCall(const ToolCallDelta& call, std::string* events) {
    const std::string id = ToolCallId(seed_, 0, call.index, model_->tools.style);
    Json item;
    item["type"] = "function_call";
    item["id"] = "fc_" + id;
    item["call_id"] = id;
    item["name"] = call.name;
    item["arguments"] = "";
    item["status"] = "in_progress";
    Open(std::move(item), events);
  }

  void Close(std::string* events) {
    if (item_.is_null()) return;
    item_["status"] = incomplete_ ? "incomplete" : "completed";
    if (!IsOpen("function_call")) {
      Json done = At();
      done["content_index"] = 0;
      done["text"] = item_["content"][0]["text"];
      const bool is_message = IsOpen("message");
      if (is_message) done["logprobs"] = Json::array();
      Send(is_message ? "response.output_text.done" : "response.reasoning_text.done",
           std::move(done), events);
      Json part = At();
      part["content_index"] = 0;
      part["part"] = item_["content"][0];
      Send("response.content_part.done", std::move(part), events);
    } else {
      Json done = At();
      done["name"] = item_["name"];
      done["arguments"] = item_["arguments"];
      Send("response.function_call_arguments.done", std::move(done), events);
    }
    Json done;
    done["output_index"] = output_.size();
    done["item"] = item_;
    Send("response.output_item.done", std::move(done), events);
    output_.push_back(std::exchange(item_, nullptr));
  }

  void Send(const char* type, Json json, std::string* events) {
    json["type"] = type;
    json["sequence_number"] = sequence_++;
    *events += Event(json, type);
  }

  const ModelEntry* model_;
  uint64_t seed_;
  Json base_;                    // the response without its output
  Json output_ = Json::array();  // complete items
  Json item_;                    // the item that is being written; null: none
  bool incomplete_ = false;
  int64_t sequence_ = 0;
};

Status StartResponse(const ServerContext& context, const HttpRequest& request,
                     std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(const Json given, ParseBody(context, request));
  SKEIN_RETURN_IF_ERROR(RefuseState(given));
  Json body = given;
  SKEIN_RETURN_IF_ERROR(ReadResponseInput(&body));
  SKEIN_RETURN_IF_ERROR(ReadToolsAndFormat(&body));
  SKEIN_RETURN_IF_ERROR(ReadReasoning(&body));
  MoveMember("max_output_tokens", "max_tokens", &body);
  for (const char* name : {"n", "top_logprobs", "stream_options"}) body.erase(name);
  SKEIN_ASSIGN_OR_RETURN(ChatCall call, ReadChatCall(context, body, ChatUse::kAnswer));
  auto format = std::make_unique<ResponsesFormat>(call, context.random_seed(), given);
  StartChatCall(std::move(call), std::move(format), std::move(responder));
  return Status::Ok();
}

}  // namespace

void AddResponsesRoute(Router* router) {
  router->AddWork("POST", "/v1/responses", Starting(&StartResponse), RouteClass::kGenerate,
                  &MayNeedGrammar);
}

}  // namespace skein
