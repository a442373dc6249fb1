#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "server/api/tei_routes.h"
#include "server/compat/compat_body.h"
#include "server/compat/zero_shot.h"
#include "server/generation/chat_call.h"
#include "server/json/api_error.h"
#include "server/json/request_body.h"
#include "server/routes.h"

namespace skein {
namespace {

constexpr int32_t kDefaultNewTokens = 100;

// Maps the parameters of text-generation-inference to the names of a chat's fields.
constexpr std::pair<const char*, const char*> kParameters[] = {
    {"max_new_tokens", "max_tokens"},
    {"temperature", "temperature"},
    {"top_k", "top_k"},
    {"top_p", "top_p"},
    {"repetition_penalty", "repetition_penalty"},
    {"frequency_penalty", "frequency_penalty"},
    {"seed", "seed"},
    {"stop", "stop"},
    {"stop_sequences", "stop"},
    {"truncate", "truncate_prompt_tokens"},
    {"adapter_id", "model"}};

Json Given(const Json& object, const char* name) {
  return object.is_object() ? object.value(name, Json(nullptr)) : Json(nullptr);
}

// As in text-generation-inference, the answer is greedy if no sampling parameter is given.
Json GenerationBody(const Json& request, const Json& parameters) {
  Json body = request;
  for (const char* name : {"inputs", "parameters", "tools"}) body.erase(name);
  for (const auto& [from, to] : kParameters) {
    const Json value = Given(parameters, from);
    if (!value.is_null()) body[to] = value;
  }
  if (!body.contains("max_tokens")) body["max_tokens"] = kDefaultNewTokens;
  const Json sampled = Given(parameters, "do_sample");
  const bool names_any =
      body.contains("temperature") || body.contains("top_k") || body.contains("top_p");
  if (sampled == false || (sampled.is_null() && !names_any)) body["temperature"] = 0;
  const Json grammar = Given(parameters, "grammar");
  if (grammar.is_object()) {
    const bool is_regex = StringMember(grammar, "type") == "regex";
    body[is_regex ? "guided_regex" : "guided_json"] = grammar.value("value", Json(nullptr));
  }
  return body;
}

class GeneratedText final : public AnswerFormat {
 public:
  GeneratedText(const ChatCall& call, std::string before, bool details)
      : model_(call.spec.model),
        seed_(call.spec.fields.request.generate().sampling.seed),
        text_(std::move(before)),
        details_(details) {}

  Json Answer(std::vector<ChoiceState>* choices, const Usage& usage) override {
    const ChoiceState& state = choices->front();
    Json entry;
    entry["generated_text"] = text_ + state.text;
    if (details_) {
      entry["details"] = Details(state, usage);
      entry["details"]["prefill"] = Json::array();
      entry["details"]["tokens"] = Json::array();
      for (const OutputToken& token : state.tokens) {
        entry["details"]["tokens"].push_back(
            Token(token, model_->tokenizer->TokenBytes(token.token)));
      }
    }
    Json list = Json::array();
    list.push_back(std::move(entry));
    return list;
  }

  void AppendEvents(ChoiceState* state, const std::function<Usage()>& usage,
                    std::string* events) override {
    text_ += state->text;
    if (!state->tokens.empty()) {
      Json event;
      event["index"] = ++index_;
      event["token"] = Token(state->tokens.back(), std::exchange(state->text, {}));
      event["generated_text"] = state->finish ? Json(text_) : Json(nullptr);
      event["details"] = state->finish ? Details(*state, usage()) : Json(nullptr);
      *events += Event(event);
    }
    state->text.clear();
    state->tokens.clear();
  }

  void AppendEnd(const Usage&, std::string*) override {}

 private:
  Json Token(const OutputToken& token, const std::string& text) const {
    Json json;
    json["id"] = token.token;
    json["text"] = text;
    json["logprob"] = token.chosen.logprob;
    json["special"] = model_->tokenizer->IsSpecial(token.token);
    return json;
  }

  Json Details(const ChoiceState& state, const Usage& usage) const {
    const bool stopped = std::holds_alternative<std::string>(state.stop_reason);
    Json json;
    json["finish_reason"] = state.finish == FinishReason::kLength ? "length"
                            : stopped                             ? "stop_sequence"
                                                                  : "eos_token";
    json["generated_tokens"] = usage.completion_tokens;
    json["input_length"] = usage.prompt_tokens;
    json["seed"] = seed_;
    return json;
  }

  const ModelEntry* model_;
  uint64_t seed_;
  std::string text_;
  bool details_;
  int32_t index_ = 0;
};

Status StartGeneration(const ServerContext& context, const Json& request,
                       std::shared_ptr<Responder> responder) {
  const std::string prompt = StringMember(request, "inputs");
  if (prompt.empty()) return InvalidField("inputs", "a string that is not empty");
  const Json parameters = Given(request, "parameters");
  if (!parameters.is_null() && !parameters.is_object()) {
    return InvalidField("parameters", "an object");
  }
  SKEIN_ASSIGN_OR_RETURN(ChatCall call, ReadChatCall(context, GenerationBody(request, parameters),
                                                     ChatUse::kAnswer, &prompt));
  // Details name each token's log-probability.
  call.spec.fields.request.generate().num_logprobs = 0;
  const bool full = Given(parameters, "return_full_text") == true;
  auto format = std::make_unique<GeneratedText>(call, full ? prompt : "",
                                                Given(parameters, "details") == true);
  StartChatCall(std::move(call), std::move(format), std::move(responder));
  return Status::Ok();
}

// Answers by the model's task and the request's form, as HuggingFace's endpoints do.
Status StartTask(const ServerContext& context, const HttpRequest& request,
                 std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(Json body, ParseBody(context, request));
  FieldReader reader(body);
  SKEIN_ASSIGN_OR_RETURN(const ModelEntry* model, FindModel(*context.models, &reader));
  const auto inputs = body.find("inputs");
  if (inputs == body.end()) return InvalidField("inputs", "given");
  if (!Given(Given(body, "parameters"), "candidate_labels").is_null()) {
    return StartZeroShot(context, *model, body, std::move(responder));
  }
  if (inputs->is_object()) return StartTeiSimilarity(context, request, std::move(responder));
  if (model->traits.classifies) {
    // One text is answered with its list of scores inside another list, as a batch of one.
    HttpRequest batch = request;
    if (inputs->is_string()) *inputs = Json::array({Json::array({*inputs})});
    batch.body = DumpJson(body);
    return StartTeiPredict(context, batch, std::move(responder));
  }
  if (!model->traits.generates) return StartTeiEmbed(context, request, std::move(responder));
  return StartGeneration(context, body, std::move(responder));
}

void SendInfo(const Json& json, Responder* responder) {
  HttpResponse response;
  response.body = DumpJson(json);
  responder->Send(std::move(response));
}

// The first model. Routes without a model's name describe this one.
const ModelEntry& FirstModel(const ServerContext& context) {
  return context.models->entries().front();
}

// Answers as text-embeddings-inference and text-generation-inference describe themselves.
void ShowInfo(const ServerContext& context, std::shared_ptr<const HttpRequest>,
              std::shared_ptr<Responder> responder) {
  const ModelEntry& model = FirstModel(context);
  const EngineLimits limits = model.engine->Limits();
  Json info;
  info["model_id"] = model.name();
  info["model_sha"] = nullptr;
  info["model_type"] = Json::object();
  if (model.traits.classifies) {
    Json labels = Json::object();
    for (size_t i = 0; i < model.traits.class_labels.size(); ++i) {
      labels[std::to_string(i)] = model.traits.class_labels[i];
    }
    info["model_type"]["classifier"]["id2label"] = std::move(labels);
  } else if (model.traits.embeds || model.traits.late_interaction) {
    info["model_type"]["embedding"] = Json::object();
    if (model.traits.sparse) info["model_type"]["embedding"]["pooling"] = "splade";
  }
  info["model_pipeline_tag"] = model.traits.classifies  ? "text-classification"
                               : model.traits.generates ? "text-generation"
                                                        : "feature-extraction";
  info["max_concurrent_requests"] = limits.max_queued_requests;
  info["max_input_length"] = model.max_model_len;
  info["max_total_tokens"] = model.max_model_len;
  info["max_client_batch_size"] = limits.max_queued_requests;
  info["auto_truncate"] = false;
  info["version"] = SKEIN_VERSION;
  SendInfo(info, responder.get());
}

// Answers as SGLang describes its model and itself.
void ShowModelInfo(const ServerContext& context, std::shared_ptr<const HttpRequest>,
                   std::shared_ptr<Responder> responder) {
  const ModelEntry& model = FirstModel(context);
  Json info;
  info["model_path"] = model.name();
  info["tokenizer_path"] = model.name();
  info["is_generation"] = model.traits.generates;
  info["preferred_sampling_params"] = nullptr;
  SendInfo(info, responder.get());
}

void ShowServerInfo(const ServerContext& context, std::shared_ptr<const HttpRequest>,
                    std::shared_ptr<Responder> responder) {
  const ModelEntry& model = FirstModel(context);
  const EngineLimits limits = model.engine->Limits();
  Json info;
  info["version"] = SKEIN_VERSION;
  info["model_path"] = model.name();
  info["served_model_name"] = model.name();
  info["context_length"] = model.max_model_len;
  info["max_running_requests"] = limits.max_num_seqs;
  info["max_queued_requests"] = limits.max_queued_requests;
  info["max_total_num_tokens"] = model.max_kv_tokens;
  SendInfo(info, responder.get());
}

// Answers with the tokenizer's special tokens and the chat template, in vLLM's form.
void ShowTokenizerInfo(const ServerContext& context, std::shared_ptr<const HttpRequest>,
                       std::shared_ptr<Responder> responder) {
  const ModelEntry& model = FirstModel(context);
  const Tokenizer& tokenizer = *model.tokenizer;
  const auto text = [&](std::optional<TokenId> id) {
    return id ? Json(tokenizer.IdToToken(*id)) : Json(nullptr);
  };
  Json info;
  info["model_max_length"] = model.max_model_len;
  info["vocab_size"] = tokenizer.vocab_size();
  info["bos_token"] = text(tokenizer.bos_id());
  info["eos_token"] = text(tokenizer.eos_id());
  info["pad_token"] = text(tokenizer.pad_id());
  const std::string source = model.chat_template != nullptr ? model.chat_template->source() : "";
  info["chat_template"] = source.empty() ? Json(nullptr) : Json(source);
  SendInfo(info, responder.get());
}

}  // namespace

void AddHuggingFaceRoutes(Router* router) {
  router->AddWork("POST", "/", Starting(&StartTask), RouteClass::kOther, &MayNeedGrammar);
  router->AddWork("GET", "/info", ShowInfo);
  for (const char* path : {"/model_info", "/get_model_info"}) {
    router->AddWork("GET", path, ShowModelInfo);
  }
  for (const char* path : {"/server_info", "/get_server_info"}) {
    router->AddWork("GET", path, ShowServerInfo);
  }
  router->AddWork("GET", "/tokenizer_info", ShowTokenizerInfo);
}

}  // namespace skein
