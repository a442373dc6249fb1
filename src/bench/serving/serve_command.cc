#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "apps/host/help.h"
#include "bench/bench_command.h"
#include "bench/serving/client.h"

namespace skein {
namespace {

struct ServeBenchOptions {
  std::string url = "http://127.0.0.1:8000";
  std::string workload;
  std::string json;
  std::string endpoint = "completions";
  std::string model;
  std::string api_key;
  std::vector<std::string> goodput;
  int64_t max_requests = 0;
  int64_t num_warmups = 0;
  int32_t concurrency = 0;
  int32_t max_connections = 512;
  double speed = 1;
  double temperature = -1;
  int64_t seed = -1;
  double timeout_s = 600;
  double time_limit_s = 3600;
  bool ignore_eos = false;
  TokenRange tokens;
};

TimeUs Microseconds(double seconds) { return static_cast<TimeUs>(seconds * 1e6); }

Result<LoadOptions> MakeLoadOptions(const ServeBenchOptions& options) {
  LoadOptions load;
  SKEIN_ASSIGN_OR_RETURN(load.url, ParseServerUrl(options.url));
  if (options.tokens.min_id >= options.tokens.vocab) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("min-id: {} must be below vocab, {}", options.tokens.min_id,
                              options.tokens.vocab),
                  "min-id");
  }
  load.api_key = options.api_key;
  load.concurrency = options.concurrency;
  load.speed = options.speed;
  load.max_connections = options.max_connections;
  load.request_timeout_us = Microseconds(options.timeout_s);
  load.time_limit_us = Microseconds(options.time_limit_s);
  load.format.endpoint =
      options.endpoint == "chat" ? BenchEndpoint::kChat : BenchEndpoint::kCompletions;
  load.format.ignore_eos = options.ignore_eos;
  if (options.temperature >= 0) load.format.temperature = options.temperature;
  if (options.seed >= 0) load.format.seed = options.seed;
  load.format.tokens = options.tokens;
  load.format.model = options.model;
  if (options.model.empty()) {
    SKEIN_ASSIGN_OR_RETURN(load.format.model, FetchModelName(load));
  }
  return load;
}

// Sends the first `count` requests, four at a time, and drops their answers.
Status WarmUp(std::vector<WorkloadRequest>* requests, int64_t count, LoadOptions load) {
  if (count == 0) return Status::Ok();
  if (count >= static_cast<int64_t>(requests->size())) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("num-warmups: {} must be below the number of requests, {}", count,
                              requests->size()),
                  "num-warmups");
  }
  const auto end = requests->begin() + count;
  load.concurrency = 4;
  SKEIN_RETURN_IF_ERROR(RunLoad({requests->begin(), end}, load).status());
  requests->erase(requests->begin(), end);
  // The load starts at once, and not at the planned time of its first request after the warm-up.
  const auto first =
      std::min_element(requests->begin(), requests->end(),
                       [](const auto& a, const auto& b) { return a.arrival_us < b.arrival_us; });
  const TimeUs start_us = first->arrival_us;
  for (WorkloadRequest& request : *requests) request.arrival_us -= start_us;
  return Status::Ok();
}

// Returns the exit status: 0 if at least one request was answered.
Result<int> RunServeBench(const ServeBenchOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(const GoodputTargets goodput, ParseGoodput(options.goodput));
  SKEIN_ASSIGN_OR_RETURN(auto requests, LoadWorkload(options.workload, options.max_requests));
  SKEIN_ASSIGN_OR_RETURN(const LoadOptions load, MakeLoadOptions(options));
  SKEIN_RETURN_IF_ERROR(WarmUp(&requests, options.num_warmups, load));
  SKEIN_ASSIGN_OR_RETURN(const LoadOutcome outcome, RunLoad(requests, load));
  const LoadReport report = MakeLoadReport(outcome.records, outcome.duration_us, goodput);

  nlohmann::ordered_json json;
  json["date"] = BenchDate();
  json["backend"] = load.format.endpoint == BenchEndpoint::kChat ? "openai-chat" : "openai";
  json["base_url"] = options.url;
  json["model_id"] = load.format.model;
  json["workload"] = options.workload;
  json["num_prompts"] = requests.size();
  json["num_not_sent"] = outcome.num_not_sent;
  json["speed"] = load.speed;
  json["max_concurrency"] = nullptr;
  if (load.concurrency > 0) json["max_concurrency"] = load.concurrency;
  json.update(LoadReportToJson(report));
  std::fputs(LoadReportToTable(report, "Serving benchmark").c_str(), stdout);
  if (outcome.num_not_sent > 0) {
    std::printf("The time limit came before %lld requests were sent.\n",
                static_cast<long long>(outcome.num_not_sent));
  }
  SKEIN_RETURN_IF_ERROR(WriteBenchJson(options.json, json));
  return report.total.completed > 0 ? 0 : 1;
}

}  // namespace

void AddBenchServeCommand(CLI::App* bench, int* exit_status) {
  auto options = std::make_shared<ServeBenchOptions>();
  ServeBenchOptions* o = options.get();
  CLI::App* app =
      bench->add_subcommand("serve", "Put a workload to a server of the OpenAI API over HTTP");
  app->add_option("--url", o->url, "The server, http only")->capture_default_str();
  app->add_option("--workload", o->workload, "One JSON request per line")->required();
  AddJsonOption(app, &o->json);
  app->add_option("--endpoint", o->endpoint, "The route that is asked")
      ->check(CLI::IsMember({"completions", "chat"}))
      ->capture_default_str();
  app->add_option("--model", o->model, "Default: the first that the server lists");
  app->add_option("--api-key", o->api_key, "Bearer token, if the server wants one")
      ->envname("SKEIN_API_KEY");
  app->add_option("--concurrency", o->concurrency,
                  "Closed loop: so many requests at a time. Without it, arrival times count")
      ->check(CLI::Range(1, 100'000));
  app->add_option("--speed", o->speed, "Open loop: arrival times are divided by this")
      ->check(CLI::Range(1e-6, 1e6))
      ->capture_default_str();
  app->add_option("--max-connections", o->max_connections, "Open loop: at most so many at a time")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app->add_option("--max-requests", o->max_requests, "Only the first of the workload; 0: all")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  app->add_option("--num-warmups", o->num_warmups,
                  "The first requests, sent before and not counted")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  app->add_option("--goodput", o->goodput,
                  "Deadlines in ms beside the workload's own: ttft:250 tpot:50 e2el:1000");
  app->add_option("--temperature", o->temperature, "Default: the server's")
      ->check(CLI::Range(0.0, 2.0));
  app->add_option("--seed", o->seed, "Request i is sent with seed SEED + i")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 52));
  app->add_flag("--ignore-eos", o->ignore_eos, "Every answer has max_tokens tokens");
  app->add_option("--timeout", o->timeout_s, "Seconds for one request")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  app->add_option("--time-limit", o->time_limit_s, "Seconds for the whole load")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  app->add_option("--vocab", o->tokens.vocab, "Compact prompts: ids are below this")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app->add_option("--min-id", o->tokens.min_id, "Compact prompts: and not below this")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  ShowFirst(app, {"--url", "--workload", "--endpoint", "--model", "--api-key", "--concurrency",
                  "--speed", "--max-requests", "--goodput", "--json"});
  RunOnBench(app, options, exit_status, RunServeBench);
}

}  // namespace skein
