#include "server/compat/ollama_chat.h"

#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <memory>
#include <utility>

#include "server/compat/compat_body.h"
#include "server/generation/chat_call.h"
#include "server/json/api_error.h"
#include "server/json/request_body.h"

namespace skein {
namespace {

constexpr std::string_view kLatest = ":latest";
constexpr int64_t kNsPerUs = 1000;

// Maps the options of Ollama to the names of the chat's fields.
constexpr std::pair<const char*, const char*> kOptions[] = {
    {"temperature", "temperature"},
    {"top_k", "top_k"},
    {"top_p", "top_p"},
    {"min_p", "min_p"},
    {"seed", "seed"},
    {"stop", "stop"},
    {"repeat_penalty", "repetition_penalty"},
    {"presence_penalty", "presence_penalty"},
    {"frequency_penalty", "frequency_penalty"},
    {"num_predict", "max_tokens"}};

Status ReadOllamaOptions(Json* body) {
  const Json options = body->value("options", Json(nullptr));
  if (!options.is_null() && !options.is_object()) return InvalidField("options", "an object");
  for (const auto& [from, to] : kOptions) {
    if (!options.is_object() || !options.contains(from) || options[from].is_null()) continue;
    // A negative number of tokens means no limit.
    const bool unlimited = std::string_view(from) == "num_predict" && options[from].is_number() &&
                           options[from].get<double>() < 0;
    if (!unlimited) (*body)[to] = options[from];
  }
  const Json format = body->value("format", Json(nullptr));
  if (format == "json") {
    (*body)["response_format"] = {{"type", "json_object"}};
  } else if (format.is_object()) {
    Json named;
    named["schema"] = format;
    (*body)["response_format"] = {{"type", "json_schema"}, {"json_schema", std::move(named)}};
  } else if (!format.is_null() && format != "") {
    return InvalidField("format", "\"json\" or a JSON schema");
  }
  if (!body->contains("stream")) (*body)["stream"] = true;
  body->erase("n");
  return Status::Ok();
}

// Turns `think`, a bool or a level, into the chat's fields.
Status ReadOllamaThink(Json* body) {
  const Json think = body->value("think", Json(nullptr));
  if (think.is_null()) return Status::Ok();
  if (think == "low" || think == "medium" || think == "high") {
    if (!body->contains("reasoning_effort")) (*body)["reasoning_effort"] = think;
    return Status::Ok();
  }
  if (!think.is_boolean()) {
    return InvalidField("think", R"(true, false, "low", "medium" or "high")");
  }
  SetThinking(think.get<bool>(), body);
  return Status::Ok();
}

// Turns Ollama's messages into the chat's. Ollama's calls have no ids, and their arguments are
// objects.
Status ReadOllamaMessages(Json* body) {
  const auto messages = body->find("messages");
  if (messages == body->end() || !messages->is_array()) return Status::Ok();
  for (size_t i = 0; i < messages->size(); ++i) {
    Json& message = (*messages)[i];
    if (!message.is_object()) continue;
    const Json images = message.value("images", Json(nullptr));
    if (images.is_array() && !images.empty()) {
      return Status(StatusCode::kUnsupported,
                    fmt::format("messages[{}].images: only text is supported", i),
                    fmt::format("messages[{}].images", i));
    }
    const Json calls = message.value("tool_calls", Json(nullptr));
    if (!calls.is_array()) continue;
    Json converted = Json::array();
    for (const Json& call : calls) {
      if (!call.is_object() || !call.contains("function") || !call["function"].is_object())
        continue;
      const Json& function = call["function"];
      converted.push_back(FunctionCall(fmt::format("call{:05d}", converted.size()),
                                       function.value("name", Json("")),
                                       function.value("arguments", Json::object())));
    }
    message["tool_calls"] = std::move(converted);
  }
  return Status::Ok();
}

class OllamaFormat final : public AnswerFormat {
 public:
  // The answer of a chat has a message, the answer of a generation has a text.
  OllamaFormat(std::string model, bool is_chat) : model_(std::move(model)), is_chat_(is_chat) {}

  Json Answer(std::vector<ChoiceState>* choices, const Usage& usage) override {
    Json line = Line(&choices->front());
    AddEnd(choices->front(), usage, &line);
    return line;
  }

  void AppendEvents(ChoiceState* state, const std::function<Usage()>& usage,
                    std::string* events) override {
    Json line = Line(state);
    state->tokens.clear();
    const Json& part = is_chat_ ? line["message"] : line;
    const bool has_news = part[is_chat_ ? "content" : "response"] != "" ||
                          part.contains("thinking") || part.contains("tool_calls");
    if (has_news) *events += DumpJson(line) + "\n";
    if (!state->finish) return;
    if (has_news) line = EmptyLine();
    AddEnd(*state, usage(), &line);
    *events += DumpJson(line) + "\n";
  }

  void AppendEnd(const Usage&, std::string*) override {}

  HttpResponse StreamHead() const override {
    HttpResponse head;
    head.content_type = "application/x-ndjson";
    return head;
  }
  HttpResponse Failure(const Status& status) const override { return OllamaFailure(status); }
  std::string FailureEvents(const Status& status) const override {
    return DumpJson({{"error", status.message()}}) + "\n";
  }

 private:
  Json EmptyLine() const {
    Json line;
    line["model"] = model_;
    line["created_at"] = Rfc3339Now();
    if (is_chat_) {
      line["message"] = {{"role", "assistant"}, {"content", ""}};
    } else {
      line["response"] = "";
    }
    line["done"] = false;
    return line;
  }

  // A tool call is written once it is complete.
  Json Line(ChoiceState* state) {
    AnswerPiece piece = TakePiece(state);
    std::ranges::move(piece.calls, std::back_inserter(calls_));
    Json line = EmptyLine();
    if (!is_chat_) {
      line["response"] = std::move(piece.content);
      if (!piece.reasoning.empty()) line["thinking"] = std::move(piece.reasoning);
      return line;
    }
    Json& message = line["message"];
    message["content"] = std::move(piece.content);
    if (!piece.reasoning.empty()) message["thinking"] = std::move(piece.reasoning);
    if (!state->finish) return line;
    for (const ToolCall& call : WholeCalls(calls_)) {
      Json function = {{"name", call.name}};
      function["arguments"] = ArgumentsObject(call.arguments);
      Json entry;
      entry["function"] = std::move(function);
      message["tool_calls"].push_back(std::move(entry));
    }
    return line;
  }

  static void AddEnd(const ChoiceState& state, const Usage& usage, Json* line) {
    (*line)["done"] = true;
    (*line)["done_reason"] = state.finish == FinishReason::kLength ? "length" : "stop";
    (*line)["total_duration"] = usage.total_us * kNsPerUs;
    (*line)["load_duration"] = 0;
    (*line)["prompt_eval_count"] = usage.prompt_tokens;
    (*line)["prompt_eval_duration"] = usage.ttft_us * kNsPerUs;
    (*line)["eval_count"] = usage.completion_tokens;
    (*line)["eval_duration"] = (usage.total_us - usage.ttft_us) * kNsPerUs;
  }

  std::string model_;
  bool is_chat_;
  std::vector<ToolCallDelta> calls_;
};

// Answers a request that has no prompt text. Clients send such a request to load a model. The model
// is loaded already, so the answer only says so.
void AnswerLoaded(const Json& body, bool is_chat, Responder* responder) {
  Json line;
  line["model"] = StringMember(body, "model");
  line["created_at"] = Rfc3339Now();
  if (is_chat) {
    line["message"] = {{"role", "assistant"}, {"content", ""}};
  } else {
    line["response"] = "";
  }
  line["done"] = true;
  line["done_reason"] = "load";
  HttpResponse response;
  response.body = DumpJson(line);
  responder->Send(std::move(response));
}

Status StartOllama(const ServerContext& context, Json body, const std::string* raw_prompt,
                   bool is_chat, std::shared_ptr<Responder> responder) {
  const std::string asked = StringMember(body, "model");
  DropLatestTag(*context.models, &body);
  SKEIN_RETURN_IF_ERROR(ReadOllamaOptions(&body));
  SKEIN_RETURN_IF_ERROR(ReadOllamaThink(&body));
  SKEIN_RETURN_IF_ERROR(ReadOllamaMessages(&body));
  SKEIN_ASSIGN_OR_RETURN(ChatCall call, ReadChatCall(context, body, ChatUse::kAnswer, raw_prompt));
  auto format =
      std::make_unique<OllamaFormat>(asked.empty() ? call.spec.model->name() : asked, is_chat);
  StartChatCall(std::move(call), std::move(format), std::move(responder));
  return Status::Ok();
}

Status StartOllamaChat(const ServerContext& context, const HttpRequest& request,
                       std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(Json body, ParseBody(context, request));
  const auto messages = body.find("messages");
  if (messages == body.end() || (messages->is_array() && messages->empty())) {
    AnswerLoaded(body, /*is_chat=*/true, responder.get());
    return Status::Ok();
  }
  return StartOllama(context, std::move(body), nullptr, /*is_chat=*/true, std::move(responder));
}

Status StartOllamaGenerate(const ServerContext& context, const HttpRequest& request,
                           std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(Json body, ParseBody(context, request));
  for (const char* name : {"suffix", "images", "template", "context"}) {
    const Json given = body.value(name, Json(nullptr));
    if (given.is_null() || given == "" || (given.is_array() && given.empty())) continue;
    return Status(StatusCode::kUnsupported, fmt::format("{} is not supported", name), name);
  }
  const std::string prompt = StringMember(body, "prompt");
  if (prompt.empty()) {
    AnswerLoaded(body, /*is_chat=*/false, responder.get());
    return Status::Ok();
  }
  body.erase("prompt");
  const bool raw = body.value("raw", Json(false)) == true;
  Json messages = Json::array();
  if (const std::string system = StringMember(body, "system"); !system.empty()) {
    messages.push_back({{"role", "system"}, {"content", system}});
  }
  messages.push_back({{"role", "user"}, {"content", prompt}});
  body["messages"] = std::move(messages);
  return StartOllama(context, std::move(body), raw ? &prompt : nullptr, /*is_chat=*/false,
                     std::move(responder));
}

}  // namespace

Handler OllamaChat() { return Starting(&StartOllamaChat, &OllamaFailure); }
Handler OllamaGenerate() { return Starting(&StartOllamaGenerate, &OllamaFailure); }

HttpResponse OllamaFailure(const Status& status) {
  HttpResponse response = ErrorResponse(status);
  response.body = DumpJson({{"error", status.message()}});
  return response;
}

void DropLatestTag(const ModelRegistry& models, Json* body) {
  std::string name = StringMember(*body, "model");
  if (!name.ends_with(kLatest) || models.Find(name) != nullptr) return;
  name.resize(name.size() - kLatest.size());
  (*body)["model"] = std::move(name);
}

std::string Rfc3339Now() {
  const auto now =
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto ms = now.time_since_epoch().count() % 1000;
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03d}Z", fmt::gmtime(seconds), ms);
}

}  // namespace skein
