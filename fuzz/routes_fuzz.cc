#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "harness.h"
#include "quiet_engine.h"
#include "server/generation/grammar_fields.h"
#include "server/router.h"
#include "server/routes.h"
#include "testing/word_tokenizer.h"

namespace skein::fuzz {
namespace {

constexpr int64_t kMostRounds = 1'000'000;
using testing::kFakeEos;

// Tokens, tasks and statuses of the models.
std::vector<std::string> Words() {
  std::vector<std::string> words = {"yes", "no", "Yes", "No", "[CLS]", "[SEP]", "[MASK]"};
  for (char a = 'A'; a <= 'E'; ++a) {
    for (char b = 'A'; b <= 'E'; ++b) words.push_back({a, b});
  }
  return words;
}

// One answer, whole or in pieces; never two.
class Recorder final : public Responder {
 public:
  void Send(HttpResponse response) override {
    SKEIN_CHECK(state_ == State::kOpen || aborted_);
    if (state_ != State::kOpen) return;
    Finish(response.status, response.content_type, std::move(response.body));
  }
  void BeginStream(HttpResponse head) override {
    SKEIN_CHECK(state_ == State::kOpen || aborted_);
    state_ = State::kStream;
    status_ = head.status;
  }
  void Write(std::string bytes) override {
    SKEIN_CHECK(state_ == State::kStream || aborted_);
    body_ += bytes;
  }
  void End() override {
    SKEIN_CHECK(state_ == State::kStream || aborted_);
    state_ = State::kDone;
    abort_ = nullptr;
  }
  void OnAbort(std::function<void(AbortReason)> callback) override {
    if (done()) return;
    if (aborted_) return callback(*aborted_);
    abort_ = std::move(callback);
  }
  void Post(std::function<void()> task) override { tasks_.push_back(std::move(task)); }
  void PostWork(std::function<void()> task) override { tasks_.push_back(std::move(task)); }

  // The oldest task; false: there is none.
  bool RunOne() {
    if (tasks_.empty()) return false;
    const auto task = std::move(tasks_.front());
    tasks_.erase(tasks_.begin());
    task();
    return true;
  }
  void DropTasks() { tasks_.clear(); }
  void Abort(AbortReason reason) {
    aborted_ = reason;
    if (auto callback = std::exchange(abort_, {}); callback && !done()) callback(reason);
  }
  bool done() const { return state_ == State::kDone; }
  int status() const { return status_; }
  const std::string& body() const { return body_; }
  const std::string& content_type() const { return content_type_; }

 private:
  enum class State { kOpen, kStream, kDone };

  void Finish(int status, std::string content_type, std::string body) {
    state_ = State::kDone;
    abort_ = nullptr;
    status_ = status;
    content_type_ = std::move(content_type);
    body_ = std::move(body);
  }

  State state_ = State::kOpen;
  int status_ = 0;
  std::string content_type_, body_;
  std::function<void(AbortReason)> abort_;
  std::optional<AbortReason> aborted_;
  std::vector<std::function<void()>> tasks_;
};

class LineTemplate final : public ChatTemplate {
 public:
  Result<std::string> Render(const Json& variables) const override {
    std::string text;
    for (const Json& message : variables.at("messages")) {
      if (message.at("role") == "bad") {
        return Status(StatusCode::kInvalidArgument, "roles must alternate");
      }
      const Json& content = message.contains("content") ? message.at("content") : Json();
      text += message.at("role").dump() + ": ";
      text += content.is_string() ? content.get<std::string>() : content.dump();
      text += "\n";
    }
    return text + "assistant: ";
  }
};

// The models of a server, one for each task, over one engine.
struct World {
  World() : tokenizer(Words()), engine(tokenizer.vocab_size()) {
    AddRoutes(&router);
    config.route_defaults[RouteClass::kDecide].slo_ttft_ms = 250;
    Add("text", [](ModelTraits*) {});
    Add("embed", [](ModelTraits* traits) {
      traits->generates = false;
      traits->embeds = true;
      traits->embedding_size = 8;
      traits->any_dimensions = true;
      traits->prompts = {{"query", "Q: "}, {"passage", ""}};
    });
    Add("class", [](ModelTraits* traits) {
      traits->generates = false;
      traits->classifies = true;
      traits->class_labels = {"contradiction", "neutral", "entailment"};
    });
    Add("laya", [](ModelTraits* traits) {
      traits->generates = false;
      traits->decision_model = {.family = "laya",
                                .max_len = 256,
                                .usual_len = 256,
                                .head_max_len = 96,
                                .temperature_by_options = {{"choice:2", 5}},
                                .cls_token = "[CLS]",
                                .sep_token = "[SEP]",
                                .mask_token = "[MASK]"};
    });
    Add("sysone", [](ModelTraits* traits) {
      traits->generates = false;
      DecisionModelTraits& model = traits->decision_model.emplace();
      model = {.family = "sysone", .max_len = 512, .usual_len = 512, .parallel = true};
      model.sysone = {.base = "qwen3",
                      .max_state_tokens = 200,
                      .max_option_tokens = 12,
                      .task_lines = {"Choose.", "Rate.", "Answer yes or no."},
                      .question = "Question: {instructions}",
                      .choice_option = "{label}: {description}",
                      .score_option = "{index}: {level}",
                      .noul_labels = {"No", "Yes"}};
    });
    for (size_t i = 0; i < registries.size(); ++i) metrics.push_back(std::make_unique<Metrics>());
    for (size_t i = 0; i < registries.size(); ++i) metrics[i]->SetModels(*registries[i]);
  }

  void Add(const std::string& name, const std::function<void(ModelTraits*)>& change) {
    ModelEntry entry;
    entry.names = {name, "alias/of-" + name};
    entry.engine = &engine;
    entry.tokenizer = &tokenizer;
    entry.defaults.eos_token_ids = {kFakeEos};
    entry.max_model_len = QuietEngine::kMaxModelLen;
    entry.tools = {.style = ToolStyle::kHermes, .in_template = true};
    change(&entry.traits);
    if (entry.traits.generates) entry.chat_template = &chat_template;
    entry.grammars = MakeGrammarCompiler(entry);
    names.push_back(name);
    registries.push_back(std::make_unique<ModelRegistry>());
    registries.back()->Add(std::move(entry));
  }

  ServerConfig config;
  testing::WordTokenizer tokenizer;
  LineTemplate chat_template;
  QuietEngine engine;
  Router router;
  std::vector<std::string> names;
  std::vector<std::unique_ptr<ModelRegistry>> registries;
  std::vector<std::unique_ptr<Metrics>> metrics;
};

// "METHOD PATH MODEL" and lines of fields.
struct Head {
  std::string method, path, model;
  std::vector<std::pair<std::string, std::string>> fields;
};

Head ReadHead(std::string_view text) {
  Head head;
  std::array<std::string*, 3> words = {&head.method, &head.path, &head.model};
  const std::string_view line = text.substr(0, text.find('\n'));
  size_t at = 0;
  for (std::string* word : words) {
    const size_t end = std::min(line.find(' ', at), line.size());
    *word = std::string(line.substr(at, end - at));
    at = std::min(end + 1, line.size());
  }
  text.remove_prefix(line.size());
  while (!text.empty()) {
    text.remove_prefix(1);
    const std::string_view field = text.substr(0, text.find('\n'));
    const size_t colon = field.find(": ");
    if (colon != field.npos) {
      head.fields.emplace_back(field.substr(0, colon), field.substr(colon + 2));
    }
    text.remove_prefix(field.size());
  }
  return head;
}

void CheckAnswer(const Recorder& answer) {
  constexpr std::array kStatuses = {200, 204, 400, 401, 404, 405, 413,
                                    415, 422, 424, 429, 500, 503};
  SKEIN_CHECK(std::ranges::count(kStatuses, answer.status()) == 1);
  // The engine's own failures alone are the server's.
  SKEIN_CHECK(answer.status() != 500 || answer.body().find("not a number") != std::string::npos);
  if (answer.content_type() == "application/json" && !answer.body().empty()) {
    SKEIN_CHECK(ParseJson(answer.body()).has_value());
  }
}

}  // namespace

// "METHOD PATH MODEL", lines of fields, the mark, a body. Every request has one answer, whatever
// the engine does and whenever the client leaves, and nothing is left of it in the engine.
void FuzzRoutes(Bytes data) {
  constexpr size_t kMostBytes = 8192;
  static World world;
  const std::string_view text = TextOf(data);
  if (text.size() > kMostBytes) return;
  const auto [head_text, body] = PartsOf(text);
  Head head = ReadHead(head_text);
  std::string allowed;
  const Route* route = world.router.Find(head.method, head.path, &allowed);
  if (route == nullptr) return;
  const uint64_t seed = SeedOf(data);
  const auto found = std::ranges::find(world.names, head.model);
  const size_t model = found == world.names.end() ? 0 : size_t(found - world.names.begin());
  const ServerContext context = {
      &world.config, world.registries[model].get(), world.metrics[model].get(),
      true,          [seed] { return seed; },       route->route_class};
  auto request = std::make_shared<HttpRequest>();
  *request = {.method = head.method, .path = head.path, .headers = std::move(head.fields)};
  request->body = std::string(body);
  request->request_id = "1";
  if (route->is_heavy != nullptr) (void)route->is_heavy(request->body);
  world.engine.Begin(seed);
  Random random(seed + 1);
  const auto answer = std::make_shared<Recorder>();
  route->handler(context, std::move(request), answer);
  const int64_t leaves_at = random.OneIn(6) ? random.Between(0, 12) : -1;
  for (int64_t round = 0;; ++round) {
    SKEIN_CHECK(round < kMostRounds);
    if (round == leaves_at) {
      answer->Abort(random.OneIn(3) ? AbortReason::kShutdown : AbortReason::kPeerGone);
    }
    const bool ran = answer->RunOne();
    const bool pumped = random.OneIn(2) || !ran ? world.engine.Pump() : true;
    if (!ran && !pumped && round > leaves_at) break;
  }
  answer->DropTasks();
  SKEIN_CHECK(world.engine.empty());
  if (leaves_at >= 0) return;
  SKEIN_CHECK(answer->done());
  CheckAnswer(*answer);
}

}  // namespace skein::fuzz
