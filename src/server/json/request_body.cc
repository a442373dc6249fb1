#include "server/json/request_body.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

#include "server/json/scheduling_fields.h"
#include "server/prompt_text.h"
#include "server/reasoning/reasoning_fields.h"
#include "server/tools/tool_fields.h"
#include "server/tools/tool_messages.h"

namespace skein {
namespace {

// The model name that the gateway smg sends for a request without one.
constexpr char kUnnamed[] = "unknown";

// Joins text parts; refuses other parts.
Result<std::string> TextOfParts(const Json& parts, const std::string& param) {
  std::string text;
  for (const Json& part : parts) {
    const auto type = part.is_object() ? FieldReader(part).String("type") : std::nullopt;
    if (!type) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("{} must hold objects with a type", param), param);
    }
    if (*type != "text" && *type != "input_text") {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("{} has a part of type {}: only text is supported", param, *type),
                    param);
    }
    FieldReader reader(part);
    const auto piece = reader.String("text");
    if (!piece) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("{}: a text part must have a string text", param), param);
    }
    if (!text.empty()) text += "\n";
    text += *piece;
  }
  return text;
}

// Clients send the arguments of earlier tool calls as JSON text; templates expect the value.
void ParseToolArguments(Json* message) {
  const auto calls = message->find("tool_calls");
  if (calls == message->end() || !calls->is_array()) return;
  for (Json& call : *calls) {
    if (!call.is_object() || !call.contains("function") || !call["function"].is_object()) continue;
    Json& function = call["function"];
    const auto arguments = function.find("arguments");
    if (arguments == function.end() || !arguments->is_string()) continue;
    if (auto value = ParseJson(arguments->get_ref<const std::string&>());
        value && value->is_object()) {
      *arguments = *std::move(value);
    }
  }
}

// Clients send messages back as they received them, with null for missing members. Templates test
// whether a member exists, so null members are removed.
void DropNullMembers(Json* message) {
  for (auto member = message->begin(); member != message->end();) {
    member = member->is_null() ? message->erase(member) : std::next(member);
  }
}

// Templates write a role without escaping. A text that could end its message and begin another is
// refused.
bool IsRole(std::string_view text) {
  constexpr size_t kMostBytes = 64;
  return !text.empty() && text.size() <= kMostBytes && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

// Whether a message may have this role: one of the API, or one that the template's text names.
bool KnowsRole(const ModelEntry& model, const std::string& role) {
  for (const char* known : {"system", "user", "assistant", "tool", "developer", "function"}) {
    if (role == known) return true;
  }
  const std::string source = model.chat_template->source();
  const auto names = [&](const char* quote) {
    return source.find(quote + role + quote) != source.npos;
  };
  return source.empty() || names("'") || names("\"");
}

// Reads the messages. The content of each becomes one text, empty if there is none.
Result<Json> ReadMessages(const ModelEntry& model, FieldReader* reader) {
  const Json* messages = reader->Find("messages");
  if (messages == nullptr || !messages->is_array() || messages->empty()) {
    return Status(StatusCode::kInvalidArgument, "messages must be an array of at least one message",
                  "messages");
  }
  Json result = Json::array();
  for (size_t i = 0; i < messages->size(); ++i) {
    const std::string param = fmt::format("messages[{}]", i);
    Json message = (*messages)[i];
    if (!message.is_object() || !FieldReader(message).String("role")) {
      return Status(StatusCode::kInvalidArgument, param + " must be an object with a string role",
                    param);
    }
    if (!IsRole(message["role"].get_ref<const std::string&>())) {
      return Status(StatusCode::kInvalidArgument,
                    param + ".role must be a name: 1 to 64 letters, digits, _, - and .",
                    param + ".role");
    }
    const auto& role = message["role"].get_ref<const std::string&>();
    if (!KnowsRole(model, role)) {
      return Status(
          StatusCode::kInvalidArgument,
          fmt::format("{}.role must be system, user, assistant, tool, developer, function "
                      "or a role that the model's chat template names, got {}",
                      param, role),
          param + ".role");
    }
    DropNullMembers(&message);
    Json& content = message["content"];
    if (content.is_null()) {
      content = "";
    } else if (content.is_array()) {
      SKEIN_ASSIGN_OR_RETURN(std::string text, TextOfParts(content, param + ".content"));
      content = std::move(text);
    } else if (!content.is_string()) {
      return Status(StatusCode::kInvalidArgument,
                    param + ".content must be a string or an array of text parts",
                    param + ".content");
    }
    if (model.user_special_tokens == UserSpecialTokens::kPlain) {
      content = PlainText(model, content.get_ref<const std::string&>());
    }
    SKEIN_RETURN_IF_ERROR(PassReasoning(model, param, &message));
    ParseToolArguments(&message);
    result.push_back(std::move(message));
  }
  return result;
}

// Reads the tools and shows them to the model: through the template, or in the messages if the
// template cannot show tools.
Status ReadTools(const ModelEntry& model, FieldReader* reader, Json* variables) {
  const ToolFields fields = ReadToolFields(reader);
  if (!reader->status().ok()) return reader->status();
  // Templates are written for transformers, which always passes both variables. In a template, None
  // and undefined differ.
  (*variables)["tools"] = nullptr;
  if (!variables->contains("documents")) (*variables)["documents"] = nullptr;
  if (!model.tools.in_template) {
    WriteTools(fields, model.tools.style, &(*variables)["messages"]);
  } else if (fields.active()) {
    (*variables)["tools"] = fields.tools;
  }
  return Status::Ok();
}

bool Lacks(const Json& body, const char* field) {
  const auto found = body.find(field);
  return found == body.end() || found->is_null();
}

// Adds the field timeout_ms if a header says how long the client waits: a header of the OpenAI
// clients (seconds) or of Envoy (milliseconds). Invalid values are ignored, since these headers may
// be meant for other programs.
void AddTimeout(const HttpRequest& request, Json* body) {
  constexpr std::pair<std::string_view, double> kHeaders[] = {
      {"x-stainless-read-timeout", 1000.0}, {"x-envoy-expected-rq-timeout-ms", 1.0}};
  if (!Lacks(*body, "timeout_ms")) return;
  for (const auto& [name, ms] : kHeaders) {
    const std::string_view text = request.Header(name);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) continue;
    value *= ms;
    if (!(value > 0 && value <= kSloMsMax)) continue;
    (*body)["timeout_ms"] = value;
    return;
  }
}

// Adds fields from a gateway's headers unless the body has them: deadlines, the user for fair
// queueing, and the priority of the named objective. llm-d has used several spellings of these
// headers.
void AddGatewayFields(const ServerConfig& config, const HttpRequest& request, Json* body) {
  struct Name {
    std::string_view header;
    const char* field;
  };
  constexpr Name kDeadlines[] = {{"x-llm-d-slo-ttft-ms", "slo_ttft_ms"},
                                 {"x-slo-ttft-ms", "slo_ttft_ms"},
                                 {"x-llm-d-slo-tpot-ms", "slo_tpot_ms"},
                                 {"x-slo-tpot-ms", "slo_tpot_ms"}};
  for (const auto& [header, field] : kDeadlines) {
    const std::string_view text = request.Header(header);
    double ms = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    if (is_number && ms > 0 && ms <= kSloMsMax && Lacks(*body, field)) (*body)[field] = ms;
  }
  constexpr std::string_view kUsers[] = {"x-llm-d-inference-fairness-id",
                                         "x-gateway-inference-fairness-id"};
  for (const std::string_view header : kUsers) {
    const std::string_view text = request.Header(header);
    if (!text.empty() && text.size() <= kUserBytesMax && Lacks(*body, "user")) {
      (*body)["user"] = std::string(text);
    }
  }
  constexpr std::string_view kObjectives[] = {"x-llm-d-inference-objective",
                                              "x-gateway-inference-objective"};
  for (const std::string_view header : kObjectives) {
    const auto found = config.objectives.find(request.Header(header));
    if (found != config.objectives.end() && Lacks(*body, "priority")) {
      (*body)["priority"] = found->second;
    }
  }
}

}  // namespace

Result<Json> ParseBody(const ServerContext& context, const HttpRequest& request) {
  std::string why;
  std::optional<Json> body = ParseJson(request.body, &why);
  if (!body) {
    return Status(StatusCode::kInvalidArgument, "the body is not acceptable JSON: " + why);
  }
  if (!body->is_object()) {
    return Status(StatusCode::kInvalidArgument, "the body must be a JSON object");
  }
  AddGatewayFields(*context.config, request, &*body);
  const ApiKey* key = FindApiKey(context.config->api_keys, request);
  const auto route = context.config->route_defaults.find(context.route_class);
  AddSchedulingDefaults(key != nullptr ? &key->defaults : nullptr,
                        route != context.config->route_defaults.end() ? &route->second : nullptr,
                        &*body);
  AddTimeout(request, &*body);
  return *std::move(body);
}

Result<const ModelEntry*> FindModel(const ModelRegistry& models, FieldReader* reader) {
  const std::string name = reader->String("model").value_or("");
  if (!reader->status().ok()) return reader->status();
  const ModelEntry* model = models.FindOrOnly(name);
  if (model == nullptr && name == kUnnamed) model = models.FindOrOnly("");
  if (model != nullptr) return model;
  if (name.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "model must name one of the served models: " + models.Names(), "model");
  }
  return Status(StatusCode::kNotFound,
                fmt::format("the model {} does not exist; served: {}", name, models.Names()),
                "model");
}

Result<const ModelEntry*> FindDecisionModel(const ModelRegistry& models, FieldReader* reader) {
  SKEIN_ASSIGN_OR_RETURN(const ModelEntry* model, FindModel(models, reader));
  return &models.ForDecisions(*model);
}

Result<Json> ReadChat(const ModelEntry& model, FieldReader* reader) {
  if (model.chat_template == nullptr) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("the model {} has no chat template: give one with --chat-template "
                              "or use /v1/completions",
                              model.name()),
                  "messages");
  }
  if (reader->Bool("continue_final_message").value_or(false)) {
    return Status(StatusCode::kUnsupported,
                  "continue_final_message is not supported by this version",
                  "continue_final_message");
  }
  if (reader->Has("chat_template")) {
    return Status(StatusCode::kUnsupported, "chat_template is not accepted in requests",
                  "chat_template");
  }
  Json variables = model.chat_template_kwargs;
  ReadReasoningEffort(reader, model, &variables);
  if (const Json* kwargs = reader->Object("chat_template_kwargs")) {
    for (const auto& [key, value] : kwargs->items()) variables[key] = value;
  }
  SKEIN_ASSIGN_OR_RETURN(variables["messages"], ReadMessages(model, reader));
  SKEIN_RETURN_IF_ERROR(ReadTools(model, reader, &variables));
  variables["add_generation_prompt"] = reader->Bool("add_generation_prompt").value_or(true);
  if (!reader->status().ok()) return reader->status();
  return variables;
}

Result<std::string> RenderChat(const ModelEntry& model, const Json& variables) {
  Result<std::string> text = model.chat_template->Render(variables);
  if (!text.ok() && text.status().param().empty()) {
    return Status(text.status().code(), text.status().message(), "messages");
  }
  return text;
}

Status EncodeChat(const ModelEntry& model, std::string_view text, bool add_special_tokens,
                  size_t max_tokens, std::vector<TokenId>* ids) {
  const bool marked = model.user_special_tokens == UserSpecialTokens::kPlain;
  const auto encode = marked ? &EncodePrompt : &EncodeRawPrompt;
  return encode(model, text, add_special_tokens, max_tokens, ids);
}

}  // namespace skein
