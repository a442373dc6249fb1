#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "apps/host/help.h"
#include "apps/host/model_host.h"
#include "apps/source_dir.h"
#include "bench/bench_command.h"
#include "bench/sched/offline.h"

namespace skein {
namespace {

// The scenarios by name, in the order in which `all` runs them.
constexpr const char* kScenarios[] = {
    "simple", "short-burst",  "long-context", "mixed-lengths", "stress",
    "code",   "conversation", "creative",     "technical-qa",  "temperature"};

struct OfflineBenchOptions {
  ModelHostOptions model;
  std::string scenario = "all";
  std::string scenario_dir = SourceDir() + "/bench/scenarios";
  std::string json;
  int32_t max_requests = 0;
  double time_limit_s = 0;
};

Result<std::vector<Scenario>> LoadScenarios(const OfflineBenchOptions& options) {
  std::vector<std::string> paths;
  std::string names;
  for (const char* name : kScenarios) {
    const std::string path = options.scenario_dir + "/" + name + ".json";
    if (options.scenario == "all" || options.scenario == name) paths.push_back(path);
    names += std::string(name) + ", ";
  }
  if (paths.empty()) {
    if (!std::filesystem::exists(options.scenario)) {
      return Status(
          StatusCode::kNotFound,
          "scenario: '" + options.scenario + "' is not one of " + names + "all, nor a file",
          "scenario");
    }
    paths.push_back(options.scenario);
  }
  std::vector<Scenario> scenarios;
  for (const std::string& path : paths) {
    SKEIN_ASSIGN_OR_RETURN(Scenario scenario, LoadScenario(path));
    if (options.max_requests > 0) LimitRequests(options.max_requests, &scenario);
    if (options.time_limit_s > 0) {
      scenario.time_limit_s = std::min(scenario.time_limit_s, options.time_limit_s);
    }
    scenarios.push_back(std::move(scenario));
  }
  return scenarios;
}

// Returns the exit status: 0 if at least one request of every scenario was answered.
Result<int> RunOfflineBench(const OfflineBenchOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(const std::vector<Scenario> scenarios, LoadScenarios(options));
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<ModelHost> host, ModelHost::Load(options.model));
  nlohmann::ordered_json json;
  json["date"] = BenchDate();
  json["model_id"] = host->name();
  json["scheduling"] = options.model.scheduling.preset;
  json["scenarios"] = nlohmann::ordered_json::array();
  int exit_status = 0;
  for (const Scenario& scenario : scenarios) {
    SKEIN_ASSIGN_OR_RETURN(const ScenarioOutcome outcome,
                           RunScenario(host->engine(), host->tokenizer(), scenario, host->clock(),
                                       host->kv_block_bytes()));
    std::fputs(LoadReportToTable(outcome.report, scenario.name).c_str(), stdout);
    if (outcome.num_clipped > 0) {
      std::printf("%lld requests were shortened to fit the model's context.\n",
                  static_cast<long long>(outcome.num_clipped));
    }
    std::fflush(stdout);
    nlohmann::ordered_json entry;
    entry["name"] = scenario.name;
    entry["description"] = scenario.description;
    entry["num_clipped"] = outcome.num_clipped;
    entry.update(LoadReportToJson(outcome.report));
    json["scenarios"].push_back(std::move(entry));
    if (outcome.report.total.completed == 0) exit_status = 1;
  }
  host->Shutdown(kShutdownUs);
  SKEIN_RETURN_IF_ERROR(WriteBenchJson(options.json, json));
  return exit_status;
}

}  // namespace

void AddBenchOfflineCommand(CLI::App* bench, int* exit_status) {
  auto options = std::make_shared<OfflineBenchOptions>();
  CLI::App* app =
      bench->add_subcommand("offline", "Run scenarios straight through the engine, without HTTP");
  AddModelHostOptions(app, &options->model);
  app->add_option("--scenario", options->scenario, "A name, a JSON file, or all")
      ->capture_default_str();
  app->add_option("--scenario-dir", options->scenario_dir, "Folder of the named scenarios")
      ->default_str("bench/scenarios of the source tree");
  app->add_option("--max-requests", options->max_requests,
                  "At most so many of each scenario; 0: all")
      ->check(CLI::Range(0, 100'000));
  app->add_option("--time-limit", options->time_limit_s,
                  "Seconds for each scenario, at most its own")
      ->check(CLI::Range(0.001, 1e6));
  AddJsonOption(app, &options->json);
  ShowFirst(app,
            {"--scenario", "--scenario-dir", "--max-requests", "--time-limit", "--json",
             "--scheduling", "--quantization", "--threads", "--max-num-seqs", "--kv-cache-memory"});
  RunOnBench(app, options, exit_status, RunOfflineBench);
}

}  // namespace skein
