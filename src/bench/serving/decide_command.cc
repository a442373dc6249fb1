#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/host/help.h"
#include "bench/bench_command.h"
#include "bench/serving/decide.h"

namespace skein {
namespace {

struct DecideBenchOptions : DecideLoad {
  std::string url_text = "http://127.0.0.1:8000";
  std::string json;
  double time_limit_s = 600;
};

nlohmann::ordered_json ToJson(const DecideLoad& load, const DecideOutcome& outcome) {
  const auto per_second = [&](int64_t count) {
    return outcome.duration_s > 0 ? static_cast<double>(count) / outcome.duration_s : 0;
  };
  const double cached = outcome.input_tokens == 0 ? 0
                                                  : static_cast<double>(outcome.cached_tokens) /
                                                        static_cast<double>(outcome.input_tokens);
  return {{"date", BenchDate()},
          {"model_id", load.model},
          {"num_inputs", load.num_inputs},
          {"input_words", load.input_words},
          {"num_questions", load.num_questions},
          {"concurrency", load.concurrency},
          {"chat_concurrency", load.chat_concurrency},
          {"duration", outcome.duration_s},
          {"completed", outcome.completed},
          {"failed", outcome.failed},
          {"decisions_per_s", per_second(outcome.completed)},
          {"questions_per_s", per_second(outcome.completed * load.num_questions)},
          {"input_tokens_per_s", per_second(outcome.input_tokens)},
          {"idle_p50_ms", outcome.idle_ms.median},
          {"p50_ms", outcome.ms.median},
          {"p99_ms", outcome.ms.p99},
          {"mean_ms", outcome.ms.mean},
          {"cached_token_share", cached},
          {"chat_completed", outcome.chat_completed},
          {"chat_output_tokens_per_s", per_second(outcome.chat_output_tokens)},
          {"drift",
           {{"compared", outcome.drift.compared},
            {"different", outcome.drift.different},
            {"max_abs", outcome.drift.max_abs}}}};
}

// Returns the exit status: 0 if every request was answered and no probability changed.
Result<int> RunDecideBench(DecideBenchOptions options) {
  SKEIN_ASSIGN_OR_RETURN(options.url, ParseServerUrl(options.url_text));
  options.time_limit_us = static_cast<TimeUs>(options.time_limit_s * 1e6);
  if (options.model.empty()) {
    LoadOptions load;
    load.url = options.url;
    load.api_key = options.api_key;
    SKEIN_ASSIGN_OR_RETURN(options.model, FetchModelName(load));
  }
  SKEIN_ASSIGN_OR_RETURN(const DecideOutcome outcome, RunDecideLoad(options));
  const nlohmann::ordered_json json = ToJson(options, outcome);
  for (const char* name :
       {"completed", "failed", "duration", "decisions_per_s", "questions_per_s", "idle_p50_ms",
        "p50_ms", "p99_ms", "cached_token_share", "chat_completed", "chat_output_tokens_per_s"}) {
    fmt::print("{:<26}{:>12.2f}\n", name, json[name].get<double>());
  }
  fmt::print("{:<26}{:>12} of {} probabilities, at most {:g}\n", "drift", outcome.drift.different,
             outcome.drift.compared, outcome.drift.max_abs);
  if (outcome.failed > 0) fmt::print("first failure: {}\n", outcome.first_error);
  SKEIN_RETURN_IF_ERROR(WriteBenchJson(options.json, json));
  return outcome.failed == 0 && outcome.completed > 0 && outcome.drift.different == 0 ? 0 : 1;
}

}  // namespace

void AddBenchDecideCommand(CLI::App* bench, int* exit_status) {
  auto options = std::make_shared<DecideBenchOptions>();
  DecideBenchOptions* o = options.get();
  CLI::App* app = bench->add_subcommand(
      "decide", "Ask a server for decisions, beside chat, and compare with its idle answers");
  const auto count = [&](const char* name, auto* value, const char* help, int low, int high) {
    app->add_option(name, *value, help)->check(CLI::Range(low, high))->capture_default_str();
  };
  app->add_option("--url", o->url_text, "The server, http only")->capture_default_str();
  app->add_option("--api-key", o->api_key, "Bearer token, if the server wants one")
      ->envname("SKEIN_API_KEY");
  app->add_option("--model", o->model, "Default: the first that the server lists");
  count("--inputs", &o->num_inputs, "Distinct inputs", 1, 100'000);
  count("--input-words", &o->input_words, "Words of an input", 1, 1'000'000);
  count("--shared-words", &o->shared_words, "The first of these, which all inputs share", 0,
        1'000'000);
  count("--questions", &o->num_questions, "Questions about each input", 1, 200);
  count("--requests", &o->num_requests, "Decisions asked for under load", 1, 10'000'000);
  count("--concurrency", &o->concurrency, "Clients that ask for decisions", 1, 1024);
  count("--chat-concurrency", &o->chat_concurrency, "Clients that chat meanwhile", 0, 1024);
  count("--chat-max-tokens", &o->chat_max_tokens, "Tokens of each chat answer", 1, 100'000);
  app->add_option("--time-limit", o->time_limit_s, "Seconds for the load")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  AddJsonOption(app, &o->json);
  ShowFirst(app, {"--url", "--api-key", "--model", "--inputs", "--input-words", "--questions",
                  "--requests", "--concurrency", "--chat-concurrency", "--json"});
  RunOnBench(app, options, exit_status, RunDecideBench);
}

}  // namespace skein
