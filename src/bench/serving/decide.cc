#include "bench/serving/decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>

#include "apps/sim/workload.h"
#include "bench/serving/json_client.h"

namespace skein {
namespace {

using SteadyClock = std::chrono::steady_clock;

double SecondsSince(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

std::string InputWords(const std::string& stream, int32_t count) {
  std::string text;
  ExpandSegmentAsText(stream, count, &text);
  return text;
}

Json MakeQuestion(int32_t index) {
  const std::string subject = InputWords(fmt::format("question/{}", index), 6);
  switch (index % 3) {
    case 0:
      return {{"type", "predicate"}, {"instructions", "Does the text speak of " + subject + "?"}};
    case 1:
      return {{"type", "choice"},
              {"instructions", "Which of these fits best: " + subject + "?"},
              {"choices", Json::array({{{"value", "first"}},
                                       {{"value", "second"}},
                                       {{"value", "third"}},
                                       {{"value", "none"}}})}};
    default:
      return {
          {"type", "score"},
          {"instructions", "How much does it say about " + subject + "?"},
          {"levels",
           Json::array({{{"label", "nothing"}}, {{"label", "a little"}}, {{"label", "much"}}})}};
  }
}

// State that the clients of one load share.
struct DecideRun {
  const DecideLoad& load;
  const std::vector<std::vector<double>>& idle;
  const SteadyClock::time_point begin;
  std::atomic<int64_t> next{0};
  std::atomic<bool> over{false};  // no decisions are left, so that chatting ends, too
  std::mutex mutex;
  DecideOutcome outcome;           // guarded by mutex
  std::vector<double> latency_ms;  // guarded by mutex

  bool TimeIsUp() const {
    return SecondsSince(begin) * 1e6 >= static_cast<double>(load.time_limit_us);
  }
};

void NoteFailure(const Status& status, DecideOutcome* outcome) {
  ++outcome->failed;
  if (outcome->first_error.empty()) outcome->first_error = status.message();
}

void AskDecisions(DecideRun* shared) {
  JsonClient client(shared->load.url, shared->load.api_key);
  while (!shared->TimeIsUp()) {
    const int64_t number = shared->next++;
    if (number >= shared->load.num_requests) return;
    const auto index = static_cast<int32_t>(number % shared->load.num_inputs);
    const auto sent = SteadyClock::now();
    Result<Json> answer = client.Post("/v1/decisions", MakeDecisionBody(shared->load, index));
    const double ms = SecondsSince(sent) * 1e3;
    Result<std::vector<double>> values =
        answer.ok() ? ProbabilitiesOf(answer.value()) : answer.status();
    const std::lock_guard lock(shared->mutex);
    DecideOutcome& outcome = shared->outcome;
    if (!values.ok()) {
      NoteFailure(values.status(), &outcome);
      continue;
    }
    ++outcome.completed;
    shared->latency_ms.push_back(ms);
    outcome.drift.Add(shared->idle[static_cast<size_t>(index)], values.value());
    const Json usage = answer.value().value("usage", Json::object());
    outcome.input_tokens += usage.value("input_tokens", int64_t{0});
    outcome.cached_tokens +=
        usage.value("input_tokens_details", Json::object()).value("cached_tokens", int64_t{0});
  }
}

void Chat(DecideRun* shared, int32_t client_index) {
  JsonClient client(shared->load.url, shared->load.api_key);
  for (int64_t turn = 0; !shared->over && !shared->TimeIsUp(); ++turn) {
    const std::string text = InputWords(fmt::format("chat/{}/{}", client_index, turn), 40);
    const Json body = {{"model", shared->load.model},
                       {"messages", Json::array({{{"role", "user"}, {"content", text}}})},
                       {"max_tokens", shared->load.chat_max_tokens},
                       {"ignore_eos", true}};
    const Result<Json> answer = client.Post("/v1/chat/completions", body);
    const std::lock_guard lock(shared->mutex);
    if (!answer.ok()) {
      NoteFailure(answer.status(), &shared->outcome);
      return;
    }
    ++shared->outcome.chat_completed;
    shared->outcome.chat_output_tokens +=
        answer.value().value("usage", Json::object()).value("completion_tokens", int64_t{0});
  }
}

// Asks for each decision twice, so that the second answer is compared with the first.
Status AskIdle(const DecideLoad& load, std::vector<std::vector<double>>* idle,
               std::vector<double>* latency_ms, Drift* drift) {
  JsonClient client(load.url, load.api_key);
  for (int32_t index = 0; index < load.num_inputs; ++index) {
    const Json body = MakeDecisionBody(load, index);
    SKEIN_ASSIGN_OR_RETURN(const Json first, client.Post("/v1/decisions", body));
    SKEIN_ASSIGN_OR_RETURN(std::vector<double> values, ProbabilitiesOf(first));
    const auto sent = SteadyClock::now();
    SKEIN_ASSIGN_OR_RETURN(const Json second, client.Post("/v1/decisions", body));
    latency_ms->push_back(SecondsSince(sent) * 1e3);
    SKEIN_ASSIGN_OR_RETURN(const std::vector<double> again, ProbabilitiesOf(second));
    drift->Add(values, again);
    idle->push_back(std::move(values));
  }
  return Status::Ok();
}

}  // namespace

Json MakeDecisionBody(const DecideLoad& load, int32_t index) {
  const int32_t shared = std::min(load.shared_words, load.input_words);
  std::string input = InputWords("shared", shared);
  input += InputWords(fmt::format("input/{}", index), load.input_words - shared);
  Json body = {{"model", load.model}, {"input", std::move(input)}, {"questions", Json::array()}};
  for (int32_t i = 0; i < load.num_questions; ++i) body["questions"].push_back(MakeQuestion(i));
  return body;
}

Result<std::vector<double>> ProbabilitiesOf(const Json& answer) {
  const auto wrong = [&] {
    return Status(StatusCode::kInternal, "not an answer of decisions: " + DumpJson(answer));
  };
  if (!answer.is_object() || !answer.contains("answers")) return wrong();
  std::vector<double> values;
  for (const Json& one : answer["answers"]) {
    if (!one.is_object()) return wrong();
    if (one.contains("probability") && one["probability"].is_number()) {
      values.push_back(one["probability"].get<double>());
      continue;
    }
    if (!one.contains("probabilities") || !one["probabilities"].is_array()) return wrong();
    for (const Json& option : one["probabilities"]) {
      if (!option.is_object() || !option.contains("probability") ||
          !option["probability"].is_number()) {
        return wrong();
      }
      values.push_back(option["probability"].get<double>());
    }
  }
  return values;
}

void Drift::Add(const std::vector<double>& idle, const std::vector<double>& loaded) {
  const size_t both = std::min(idle.size(), loaded.size());
  const size_t missing = std::max(idle.size(), loaded.size()) - both;
  compared += static_cast<int64_t>(both + missing);
  different += static_cast<int64_t>(missing);
  if (missing > 0) max_abs = std::max(max_abs, 1.0);
  for (size_t i = 0; i < both; ++i) {
    if (idle[i] == loaded[i]) continue;
    ++different;
    max_abs = std::max(max_abs, std::abs(idle[i] - loaded[i]));
  }
}

Result<DecideOutcome> RunDecideLoad(const DecideLoad& load) {
  std::vector<std::vector<double>> idle;
  std::vector<double> idle_ms;
  Drift drift;
  SKEIN_RETURN_IF_ERROR(AskIdle(load, &idle, &idle_ms, &drift));
  DecideRun shared{.load = load, .idle = idle, .begin = SteadyClock::now()};
  shared.outcome.drift = drift;
  std::vector<std::thread> chats, clients;
  for (int32_t i = 0; i < load.chat_concurrency; ++i) chats.emplace_back(Chat, &shared, i);
  for (int32_t i = 0; i < load.concurrency; ++i) clients.emplace_back(AskDecisions, &shared);
  for (std::thread& client : clients) client.join();
  shared.outcome.duration_s = SecondsSince(shared.begin);
  shared.over = true;
  for (std::thread& chat : chats) chat.join();

  DecideOutcome outcome = std::move(shared.outcome);
  outcome.idle_ms = Summarize(std::move(idle_ms));
  outcome.ms = Summarize(std::move(shared.latency_ms));
  return outcome;
}

}  // namespace skein
