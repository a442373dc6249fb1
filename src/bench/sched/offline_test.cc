#include "bench/sched/offline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

namespace skein {
namespace {

using ::testing::HasSubstr;

// A tokenizer with one token per byte; ids below 4 are special.
class ByteTokenizer final : public Tokenizer {
 public:
  Status Encode(std::string_view text, bool add_special_tokens,
                std::vector<TokenId>* ids) const override {
    if (add_special_tokens) ids->push_back(1);
    for (const char c : text) {
      if (c == '\xff') return Status(StatusCode::kInvalidArgument, "invalid UTF-8", "prompt");
      ids->push_back(static_cast<uint8_t>(c));
    }
    return Status::Ok();
  }
  std::string Decode(std::span<const TokenId>, bool) const override { return ""; }
  std::unique_ptr<TextStream> NewTextStream(bool) const override { return nullptr; }  // not used
  int32_t vocab_size() const override { return 256; }
  std::optional<TokenId> TokenToId(std::string_view) const override { return std::nullopt; }
  std::string_view IdToToken(TokenId) const override { return ""; }
  std::string TokenBytes(TokenId id) const override { return {static_cast<char>(id)}; }
  bool IsSpecial(TokenId id) const override { return id < 4; }
  std::optional<TokenId> bos_id() const override { return 1; }
  std::optional<TokenId> eos_id() const override { return 2; }
  std::optional<TokenId> pad_id() const override { return std::nullopt; }
};

// An engine that gives each running request one token per step of 2 ms, and one block.
class SteppingEngine final : public Engine {
 public:
  SteppingEngine() : thread_([this] { Loop(); }) {}
  ~SteppingEngine() override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    thread_.join();
  }

  // The offline benchmark submits requests one by one.
  Status SubmitGroup(std::vector<Request>, OutputCallback, std::vector<RequestId>*) override {
    return Status(StatusCode::kUnsupported, "no groups");
  }
  Status Submit(Request request, OutputCallback callback, RequestId* id) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (static_cast<int32_t>(running_.size()) >= max_running) {
      return Status(StatusCode::kResourceExhausted, "queue is full");
    }
    *id = ++last_id_;
    stats_.prompt_tokens += request.prompt.size();
    stats_.prefix_cache_hits += 1;
    seen_.push_back(request);
    running_[*id] = {request.generate().max_tokens, std::move(callback)};
    most_running_ = std::max(most_running_, running_.size());
    return Status::Ok();
  }
  void Cancel(RequestId id) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (running_.contains(id)) running_[id].cancelled = true;
  }
  void CancelSample(RequestId id, int32_t) override { Cancel(id); }
  EngineLimits Limits() const override {
    EngineLimits limits;
    limits.vocab_size = 300;
    limits.max_model_len = 64;
    return limits;
  }
  EngineStats Stats() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    EngineStats stats = stats_;
    stats.kv_blocks_used = static_cast<int32_t>(running_.size());
    return stats;
  }

  std::vector<Request> seen() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return seen_;
  }
  size_t most_running() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return most_running_;
  }

  int32_t max_running = 1000;
  bool stuck = false;  // whether it gives no tokens at all

 private:
  struct Running {
    int32_t left = 0;
    OutputCallback callback;
    bool cancelled = false;
  };

  void Loop() {
    while (true) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      std::lock_guard<std::mutex> lock(mutex_);
      if (stop_) return;
      if (running_.empty()) continue;
      ++stats_.steps_decode;
      stats_.decode_us += 2000;
      stats_.wasted_decode_slots += 3;
      for (auto it = running_.begin(); it != running_.end();) {
        it = Step(it->first, it->second) ? running_.erase(it) : std::next(it);
      }
    }
  }

  bool Step(RequestId id, Running& running) {
    RequestOutput output;
    output.request = id;
    output.cached_tokens = 1;
    if (running.cancelled) {
      output.finish = FinishReason::kCancelled;
    } else if (!stuck) {
      if (running.left > 0) output.tokens.push_back({});
      if (--running.left <= 0) output.finish = FinishReason::kLength;
    }
    running.callback(output);
    return output.finish.has_value();
  }

  mutable std::mutex mutex_;
  std::map<RequestId, Running> running_;
  std::vector<Request> seen_;
  size_t most_running_ = 0;
  EngineStats stats_;
  RequestId last_id_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

Scenario Parse(const std::string& json) {
  auto scenario = ParseScenario(json);
  EXPECT_TRUE(scenario.ok()) << scenario.status().message();
  return scenario.ok() ? std::move(scenario).value() : Scenario{};
}

TEST(RunScenarioTest, ReportsWhatHappened) {
  SteppingEngine engine;
  const Scenario scenario =
      Parse(R"({"name":"s","requests":[{"class":"a","count":6,"prompt_tokens":10,"max_tokens":5},)"
            R"({"class":"b","count":2,"prompt":"hello","max_tokens":1}]})");
  const auto outcome = RunScenario(engine, ByteTokenizer(), scenario, MonotonicClock(), 100);
  ASSERT_TRUE(outcome.ok());
  const LoadReport& report = outcome.value().report;
  EXPECT_EQ(report.total.completed, 8);
  EXPECT_EQ(report.total.failed, 0);
  EXPECT_EQ(report.total.input_tokens, 6 * 10 + 2 * 6);
  EXPECT_EQ(report.total.output_tokens, 6 * 5 + 2);
  EXPECT_EQ(report.total.cached_tokens, 8);
  ASSERT_EQ(report.classes.size(), 2u);
  EXPECT_EQ(report.classes[0].completed, 6);
  EXPECT_GE(report.classes[0].ttft_ms.mean, 0);
  // Five steps of 2 ms, of which the first may have begun before.
  EXPECT_GE(report.classes[0].e2el_ms.mean, 8);
  EXPECT_GE(report.classes[0].tpot_ms.mean, 1.9);
  ASSERT_TRUE(report.engine.has_value());
  EXPECT_GE(report.engine->steps, 5);
  EXPECT_EQ(report.engine->wasted_decode_slots, 3 * report.engine->steps);
  EXPECT_NEAR(report.engine->decode_time_s, 0.002 * static_cast<double>(report.engine->steps),
              1e-9);
  EXPECT_NEAR(report.engine->decode_throughput, (32 - 8) / report.engine->decode_time_s, 1e-6);
  EXPECT_EQ(report.engine->prefill_throughput, 0);  // the engine had no such step
  EXPECT_GT(report.engine->peak_kv_bytes, 0);
  EXPECT_LE(report.engine->peak_kv_bytes, 800);
  EXPECT_EQ(report.engine->peak_kv_bytes % 100, 0);
  EXPECT_EQ(outcome.value().num_clipped, 0);
}

TEST(RunScenarioTest, ClosedLoopKeepsItsConcurrency) {
  SteppingEngine engine;
  const Scenario scenario =
      Parse(R"({"name":"s","arrival":{"pattern":"closed","concurrency":3},)"
            R"("requests":[{"count":12,"prompt_tokens":4,"max_tokens":[1,3]}]})");
  const auto outcome = RunScenario(engine, ByteTokenizer(), scenario, MonotonicClock(), 1);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.value().report.total.completed, 12);
  EXPECT_EQ(engine.most_running(), 3u);
  EXPECT_LE(outcome.value().report.engine->peak_kv_bytes, 3);
}

TEST(RunScenarioTest, BurstsComeInTime) {
  SteppingEngine engine;
  const Scenario scenario =
      Parse(R"({"name":"s","arrival":{"pattern":"bursts","size":2,"interval_s":0.05},)"
            R"("requests":[{"count":6,"prompt_tokens":4,"max_tokens":1}]})");
  const auto outcome = RunScenario(engine, ByteTokenizer(), scenario, MonotonicClock(), 1);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.value().report.total.completed, 6);
  EXPECT_GE(outcome.value().report.duration_s, 0.1);
  // The time before its submission does not count.
  EXPECT_LT(outcome.value().report.total.ttft_ms.median, 50);
}

TEST(RunScenarioTest, RefusalsFailAlone) {
  SteppingEngine engine;
  engine.max_running = 2;
  const Scenario scenario =
      Parse(R"({"name":"s","requests":[{"count":5,"prompt_tokens":4,"max_tokens":20}]})");
  const auto outcome = RunScenario(engine, ByteTokenizer(), scenario, MonotonicClock(), 1);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.value().report.total.completed, 2);
  EXPECT_EQ(outcome.value().report.total.failed, 3);
  EXPECT_EQ(outcome.value().report.errors[0].first, "queue is full");
}

TEST(RunScenarioTest, ClosedLoopOutlivesRefusals) {
  SteppingEngine engine;
  engine.max_running = 0;
  const Scenario scenario = Parse(R"({"name":"s","arrival":{"pattern":"closed","concurrency":3},)"
                                  R"("requests":[{"count":5,"prompt_tokens":4}]})");
  const auto outcome = RunScenario(engine, ByteTokenizer(), scenario, MonotonicClock(), 1);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.value().report.total.failed, 5);
}

TEST(RunScenarioTest, TimeLimitCancels) {
  SteppingEngine engine;
  engine.stuck = true;
  const Scenario scenario =
      Parse(R"({"name":"s","time_limit_s":0.05,"arrival":{"pattern":"closed","concurrency":2},)"
            R"("requests":[{"count":5,"prompt_tokens":4}]})");
  const auto outcome = RunScenario(engine, ByteTokenizer(), scenario, MonotonicClock(), 1);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.value().report.total.failed, 5);
  ASSERT_EQ(outcome.value().report.errors.size(), 2u);
  EXPECT_EQ(outcome.value().report.errors[0],
            (std::pair<std::string, int64_t>("not submitted before the time limit", 3)));
  EXPECT_EQ(outcome.value().report.errors[1].second, 2);
}

TEST(PlanScenarioTest, DrawsTheSameRequestsAgain) {
  SteppingEngine engine;
  const Scenario scenario =
      Parse(R"({"name":"s","seed":5,"arrival":{"pattern":"poisson","rate_per_s":100},"requests":[)"
            R"({"class":"a","count":50,"prompt_tokens":[8,40],"shared_prefix_tokens":6,)"
            R"("max_tokens":[1,9],"ignore_eos":false,"sampling":{"temperature":0.7,"seed":10}},)"
            R"({"class":"b","count":2,"prompt_tokens":3}]})");
  const auto plan = PlanScenario(scenario, ByteTokenizer(), engine.Limits());
  const auto again = PlanScenario(scenario, ByteTokenizer(), engine.Limits());
  ASSERT_TRUE(plan.ok());
  const auto& requests = plan.value().requests;
  ASSERT_EQ(requests.size(), 52u);
  EXPECT_EQ(requests[1].request_class, "b");  // requests come from the kinds in turn
  EXPECT_EQ(requests[3].request_class, "b");
  TimeUs last_us = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const Request& request = requests[i].request;
    EXPECT_EQ(request.prompt, again.value().requests[i].request.prompt);
    EXPECT_EQ(requests[i].arrival_us, again.value().requests[i].arrival_us);
    EXPECT_GT(requests[i].arrival_us, last_us);
    last_us = requests[i].arrival_us;
    for (const TokenId id : request.prompt) {
      EXPECT_GE(id, 4);
      EXPECT_LT(id, 256);
    }
    if (requests[i].request_class != "a") continue;
    EXPECT_GE(request.prompt.size(), 8u);
    EXPECT_LE(request.prompt.size(), 40u);
    EXPECT_TRUE(std::equal(request.prompt.begin(), request.prompt.begin() + 6,
                           requests[0].request.prompt.begin()));
    EXPECT_EQ(request.generate().stop_token_ids, std::vector<TokenId>{2});
    EXPECT_FLOAT_EQ(request.generate().sampling.temperature, 0.7f);
  }
  EXPECT_NE(requests[0].request.prompt[6], requests[2].request.prompt[6]);
  EXPECT_EQ(requests[2].request.generate().sampling.seed, 11u);
  EXPECT_NEAR(static_cast<double>(last_us), 520'000, 300'000);
}

TEST(PlanScenarioTest, ClipsToTheContext) {
  SteppingEngine engine;
  const Scenario scenario =
      Parse(R"({"name":"s","requests":[{"prompt_tokens":500,"max_tokens":10},)"
            R"({"prompt_tokens":5,"max_tokens":100},{"prompt_tokens":54,"max_tokens":10}]})");
  const auto plan = PlanScenario(scenario, ByteTokenizer(), engine.Limits());
  ASSERT_TRUE(plan.ok());
  const auto& requests = plan.value().requests;
  EXPECT_EQ(plan.value().num_clipped, 2);
  EXPECT_EQ(requests[0].request.prompt.size(), 54u);
  EXPECT_EQ(requests[0].request.generate().max_tokens, 10);
  EXPECT_EQ(requests[1].request.generate().max_tokens, 63);
  EXPECT_EQ(requests[1].request.prompt.size(), 1u);
  EXPECT_EQ(requests[2].request.prompt.size(), 54u);
}

TEST(PlanScenarioTest, TextThatIsNoText) {
  SteppingEngine engine;
  Scenario scenario = Parse(R"({"name":"s","requests":[{"prompt":"x"}]})");
  scenario.requests[0].prompt = "\xff";
  EXPECT_FALSE(PlanScenario(scenario, ByteTokenizer(), engine.Limits()).ok());
}

TEST(ScenarioTest, LimitTakesFromTheKindsInTurn) {
  Scenario scenario =
      Parse(R"({"name":"s","requests":[{"count":1,"prompt":"x"},{"count":9,"prompt":"y"},)"
            R"({"count":9,"prompt":"z"}]})");
  LimitRequests(6, &scenario);
  ASSERT_EQ(scenario.requests.size(), 3u);
  EXPECT_EQ(scenario.requests[0].count, 1);
  EXPECT_EQ(scenario.requests[1].count, 3);
  EXPECT_EQ(scenario.requests[2].count, 2);
  LimitRequests(100, &scenario);
  EXPECT_EQ(scenario.requests[1].count, 3);
  LimitRequests(1, &scenario);
  ASSERT_EQ(scenario.requests.size(), 1u);
  EXPECT_EQ(scenario.requests[0].prompt, "x");
}

TEST(ScenarioTest, CommittedScenariosAreSound) {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(SKEIN_SOURCE_DIR "/bench/scenarios")) {
    const auto scenario = LoadScenario(entry.path().string());
    ASSERT_TRUE(scenario.ok()) << scenario.status().message();
    EXPECT_EQ(scenario.value().name, entry.path().stem().string());
    EXPECT_FALSE(scenario.value().description.empty());
    ++count;
  }
  EXPECT_EQ(count, 10);
}

TEST(ScenarioTest, RefusesBadFieldsByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([])", "JSON object"},
      {R"({"requests":[{"prompt":"x"}]})", "name"},
      {R"({"name":"s"})", "requests"},
      {R"({"name":"s","requests":[]})", "requests"},
      {R"({"name":"s","requests":[{}]})", "requests[0].prompt"},
      {R"({"name":"s","requests":[{"prompt":"x","prompt_tokens":3}]})", "requests[0].prompt"},
      {R"({"name":"s","requests":[{"prompt":"x"},{"prompt_tokens":[9,3]}]})",
       "requests[1].prompt_tokens"},
      {R"({"name":"s","requests":[{"prompt":"x","max_token":3}]})", "max_token is not"},
      {R"({"name":"s","requests":[{"prompt":"x","sampling":{"temperature":3}}]})",
       "requests[0].sampling.temperature must be a number in [0, 2]"},
      {R"({"name":"s","requests":[{"prompt_tokens":3,"shared_prefix_tokens":4}]})",
       "shared_prefix_tokens"},
      {R"({"name":"s","requests":[{"prompt":"x","count":0}]})", "requests[0].count"},
      {R"({"name":"s","arrival":{"pattern":"poisson"},"requests":[{"prompt":"x"}]})",
       "arrival.rate_per_s"},
      {R"({"name":"s","arrival":{"pattern":"tidal"},"requests":[{"prompt":"x"}]})", "tidal"},
      {R"({"name":"s","arrival":{"pattern":"closed","size":1},"requests":[{"prompt":"x"}]})",
       "arrival.size"}};
  for (const auto& [json, part] : cases) {
    const auto scenario = ParseScenario(json);
    ASSERT_FALSE(scenario.ok()) << json;
    EXPECT_THAT(scenario.status().message(), HasSubstr(part)) << json;
  }
}

}  // namespace
}  // namespace skein
