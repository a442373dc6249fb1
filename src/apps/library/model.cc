#include "skein/model.h"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <condition_variable>
#include <future>
#include <mutex>
#include <utility>

#include "apps/host/model_host.h"
#include "apps/model/model_fetch.h"
#include "server/json/json.h"
#include "server/local_routes.h"

namespace skein {
namespace {

constexpr int kHttpOk = 200;

Result<ModelHostOptions> ParseOptions(const std::string& model, std::vector<std::string> options) {
  ModelHostOptions parsed;
  CLI::App app;
  app.set_help_flag();
  AddModelHostOptions(&app, &parsed);
  app.add_option("--lora", parsed.adapters)->expected(1)->take_all();
  app.add_option("--max-wait", parsed.max_wait_s)->check(CLI::Range(0.0, 86400.0));
  parsed.show_progress = false;
  options.insert(options.begin(), model);
  std::ranges::reverse(options);  // CLI11 expects the arguments in reverse order
  try {
    app.parse(options);
  } catch (const CLI::ParseError& error) {
    return Status(StatusCode::kInvalidArgument, error.what(), "options");
  }
  return parsed;
}

LoadedModel InfoOf(const ModelHost& host) {
  const ModelEntry& entry = host.entry();
  const EngineLimits limits = entry.engine->Limits();
  return {.name = entry.name(),
          .dir = host.model_dir(),
          .max_model_len = entry.max_model_len,
          .max_num_seqs = limits.max_num_seqs,
          .max_queued_requests = limits.max_queued_requests,
          .generates = entry.traits.generates,
          .embeds = entry.traits.embeds,
          .classifies = entry.traits.classifies,
          .class_labels = entry.traits.class_labels,
          .embedding_size = entry.traits.embedding_size};
}

// The StatusCode that the server turns into this HTTP status (skein/status.h).
StatusCode CodeOf(int http_status) {
  switch (http_status) {
    case 400:
      return StatusCode::kInvalidArgument;
    case 404:
      return StatusCode::kNotFound;
    case 413:
      return StatusCode::kTooLarge;
    case 429:
      return StatusCode::kResourceExhausted;
    case 503:
      return StatusCode::kUnavailable;
    default:
      return StatusCode::kInternal;
  }
}

Result<Json> AnswerOf(int http_status, const std::string& body) {
  const std::optional<Json> json = ParseJson(body);
  if (!json) return Status(StatusCode::kInternal, "the answer is no JSON");
  if (http_status == kHttpOk) return *json;
  const Json error = json->value("error", Json::object());
  const Json param = error.value("param", Json(nullptr));
  return Status(CodeOf(http_status), error.value("message", std::string("no message")),
                param.is_string() ? param.get<std::string>() : std::string());
}

Json QuestionJson(const Question& question) {
  Json json;
  const bool is_choice = question.type == Question::Type::kChoice;
  json["type"] = is_choice                                 ? "choice"
                 : question.type == Question::Type::kScore ? "score"
                                                           : "predicate";
  json["instructions"] = question.instructions;
  if (question.type == Question::Type::kPredicate) return json;
  Json& options = json[is_choice ? "choices" : "levels"];
  options = Json::array();
  for (size_t i = 0; i < question.options.size(); ++i) {
    Json option;
    option[is_choice ? "value" : "label"] = question.options[i];
    if (!question.descriptions.empty()) option["description"] = question.descriptions[i];
    options.push_back(std::move(option));
  }
  return json;
}

Decision DecisionOf(const Json& answer) {
  Decision decision;
  decision.probability = answer.value("probability", 0.0);
  decision.choice = answer.value("choice", std::string());
  decision.score = answer.value("score", 0.0);
  decision.confidence = answer.value("confidence", 0.0);
  for (const Json& entry : answer.value("probabilities", Json::array())) {
    decision.probabilities.push_back(entry.at("probability").get<double>());
  }
  return decision;
}

// Decodes base64 to little-endian binary32 numbers, the form of /v1/embeddings.
std::vector<float> FloatsOf(const std::string& base64) {
  const auto value_of = [](char c) -> uint32_t {
    if (c >= 'A' && c <= 'Z') return static_cast<uint32_t>(c - 'A');
    if (c >= 'a' && c <= 'z') return static_cast<uint32_t>(c - 'a') + 26;
    if (c >= '0' && c <= '9') return static_cast<uint32_t>(c - '0') + 52;
    return c == '+' ? 62 : 63;
  };
  std::string bytes;
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : base64) {
    if (c == '=') break;
    bits = bits << 6 | value_of(c);
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes += static_cast<char>(bits >> num_bits & 0xFF);
  }
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::copy_n(bytes.data(), floats.size() * sizeof(float), reinterpret_cast<char*>(floats.data()));
  return floats;
}

}  // namespace

class ServedModel::Impl {
 public:
  explicit Impl(std::unique_ptr<ModelHost> host)
      : info_(InfoOf(*host)),
        host_(std::move(host)),
        // Requests without a seed get different seeds, which are the same in every run.
        routes_(std::make_unique<LocalRoutes>(RegistryOf(*host_), [next = uint64_t{0}]() mutable {
          return next += 0x9E3779B97F4A7C15;
        })) {}
  ~Impl() {
    routes_->Abort();
    {
      std::unique_lock lock(mutex_);
      answered_.wait(lock, [this] { return num_open_ == 0; });
    }
    routes_.reset();  // before the models that it uses
  }

  const LoadedModel& info() const { return info_; }
  void Abort() { routes_->Abort(); }

  Status Post(const std::string& path, std::string body, Done done) {
    if (!routes_->Has(path)) return {StatusCode::kNotFound, "there is no route POST " + path};
    {
      const std::lock_guard lock(mutex_);
      ++num_open_;
    }
    routes_->Post(path, std::move(body), [this, done = std::move(done)](HttpResponse response) {
      done(response.status, std::move(response.body));
      const std::lock_guard lock(mutex_);
      --num_open_;
      answered_.notify_all();
    });
    return Status::Ok();
  }

  Result<Json> Ask(const std::string& path, const Json& body) {
    const auto answer = std::make_shared<std::promise<std::pair<int, std::string>>>();
    SKEIN_RETURN_IF_ERROR(Post(path, DumpJson(body), [answer](int status, std::string text) {
      answer->set_value({status, std::move(text)});
    }));
    const auto [status, text] = answer->get_future().get();
    return AnswerOf(status, text);
  }

 private:
  const LoadedModel info_;
  const std::unique_ptr<ModelHost> host_;
  std::unique_ptr<LocalRoutes> routes_;
  std::mutex mutex_;
  std::condition_variable answered_;
  int64_t num_open_ = 0;  // guarded by mutex_
};

ServedModel::ServedModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ServedModel::~ServedModel() = default;

Status ServedModel::Load(const std::string& model, const std::vector<std::string>& options,
                         std::unique_ptr<ServedModel>* loaded) {
  spdlog::set_level(spdlog::level::warn);
  SKEIN_ASSIGN_OR_RETURN(const ModelHostOptions parsed, ParseOptions(model, options));
  SKEIN_ASSIGN_OR_RETURN(std::unique_ptr<ModelHost> host, ModelHost::Load(parsed));
  loaded->reset(new ServedModel(std::make_unique<Impl>(std::move(host))));
  return Status::Ok();
}

const LoadedModel& ServedModel::info() const { return impl_->info(); }

Status ServedModel::Decide(const std::string& input, const std::vector<Question>& questions,
                           std::vector<Decision>* decisions) {
  Json body;
  body["input"] = input;
  body["questions"] = Json::array();
  for (size_t i = 0; i < questions.size(); ++i) {
    const Question& question = questions[i];
    if (!question.descriptions.empty() && question.descriptions.size() != question.options.size()) {
      const std::string name = "questions[" + std::to_string(i) + "].descriptions";
      return {StatusCode::kInvalidArgument,
              name + " must be empty or have one entry for each option", name};
    }
    body["questions"].push_back(QuestionJson(question));
  }
  SKEIN_ASSIGN_OR_RETURN(const Json answer, impl_->Ask("/v1/decisions", body));
  decisions->clear();
  for (const Json& entry : answer.at("answers")) decisions->push_back(DecisionOf(entry));
  return Status::Ok();
}

Status ServedModel::Embed(const std::vector<std::string>& texts,
                          std::vector<std::vector<float>>* vectors) {
  const Json body = {{"input", texts}, {"encoding_format", "base64"}};
  SKEIN_ASSIGN_OR_RETURN(const Json answer, impl_->Ask("/v1/embeddings", body));
  vectors->clear();
  for (const Json& entry : answer.at("data")) {
    vectors->push_back(FloatsOf(entry.at("embedding").get_ref<const std::string&>()));
  }
  return Status::Ok();
}

Status ServedModel::Chat(const std::vector<Message>& messages, const ChatOptions& options,
                         ChatAnswer* answer) {
  Json body;
  body["messages"] = Json::array();
  for (const Message& message : messages) {
    body["messages"].push_back({{"role", message.role}, {"content", message.content}});
  }
  if (options.max_tokens) body["max_tokens"] = *options.max_tokens;
  if (options.temperature) body["temperature"] = *options.temperature;
  if (options.top_p) body["top_p"] = *options.top_p;
  if (options.seed) body["seed"] = *options.seed;
  if (!options.stop.empty()) body["stop"] = options.stop;
  if (!options.json_schema.empty()) body["structured_outputs"]["json"] = options.json_schema;
  SKEIN_ASSIGN_OR_RETURN(const Json reply, impl_->Ask("/v1/chat/completions", body));
  const Json& choice = reply.at("choices").at(0);
  const Json& message = choice.at("message");
  const Json& content = message.at("content");
  answer->text = content.is_string() ? content.get<std::string>() : std::string();
  answer->reasoning = message.value("reasoning_content", "");
  answer->finish_reason = choice.at("finish_reason").get<std::string>();
  answer->prompt_tokens = reply.at("usage").at("prompt_tokens").get<int32_t>();
  answer->completion_tokens = reply.at("usage").at("completion_tokens").get<int32_t>();
  return Status::Ok();
}

Status ServedModel::Post(const std::string& path, std::string body, Done done) {
  return impl_->Post(path, std::move(body), std::move(done));
}

void ServedModel::Abort() { impl_->Abort(); }

Status FetchKnownModel(const std::string& name, std::string* dir) {
  SKEIN_ASSIGN_OR_RETURN(*dir, FetchModel(name));
  return Status::Ok();
}

const char* Version() { return SKEIN_VERSION; }

}  // namespace skein
