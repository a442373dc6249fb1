#include "bench/bench_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>
#include <fstream>

#include "apps/commands.h"
#include "apps/host/choice.h"
#include "apps/host/model_choices.h"

namespace skein {

void AddModelDirOption(CLI::App* app, std::string* model) {
  app->add_option("MODEL", *model,
                  "A model directory, a fetched model, or org/name in the local cache")
      ->required();
}

void AddThreadsOption(CLI::App* app, int32_t* threads) {
  app->add_option("--threads", *threads,
                  "Threads that compute; 0: one per processor that it may run on")
      ->check(CLI::Range(0, 1024));
}

void AddDtypeOption(CLI::App* app, ComputeChoice* dtype) {
  AddChoice(app, "--dtype", dtype, "Compute type: auto, bf16 or f32");
}

void AddJsonOption(CLI::App* app, std::string* path) {
  app->add_option("--json", *path, "Write the results to this file");
}

int BenchExitStatus(const CLI::App& app, const Result<int>& result) {
  return result.ok() ? result.value() : BenchExitStatus(app, result.status());
}

int BenchExitStatus(const CLI::App& app, const Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "skein bench %s: %s\n", app.get_name().c_str(), status.message().c_str());
  return 1;
}

Status WriteBenchJson(const std::string& path, const nlohmann::ordered_json& json) {
  if (path.empty()) return Status::Ok();
  std::ofstream file(path);
  file << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
  file.flush();
  if (file) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, "json: " + path + " cannot be written", "json");
}

std::string BenchDate() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &utc);
  return text;
}

void AddBenchCommand(CLI::App* app, int* exit_status) {
  CLI::App* bench = app->add_subcommand(
      "bench", "Measure a server, the engine, its scheduler, a tokenizer, kernels or the machine");
  bench->require_subcommand(1);
  AddBenchServeCommand(bench, exit_status);
  AddBenchOfflineCommand(bench, exit_status);
  AddBenchDecideCommand(bench, exit_status);
  AddBenchTokenizerCommand(bench, exit_status);
  AddBenchLimitsCommand(bench, exit_status);
  AddBenchKernelsCommand(bench, exit_status);
  AddBenchQuantizationCommand(bench, exit_status);
  AddBenchForwardCommand(bench, exit_status);
  AddBenchPreemptionCommand(bench, exit_status);
  AddBenchRerankCommand(bench, exit_status);
  AddBenchQualityCommand(bench, exit_status);
  AddBenchSchedCommand(bench, exit_status);
  AddBenchGpuCommand(bench, exit_status);
  AddBenchJctCommand(bench, exit_status);
  AddBenchBudgetCommand(bench, exit_status);
}

}  // namespace skein
