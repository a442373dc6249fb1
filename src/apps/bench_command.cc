#include "apps/bench_command.h"

#include <ctime>
#include <fstream>

#include "apps/commands.h"

namespace skein {

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
  AddBenchSchedCommand(bench, exit_status);
  AddBenchJctCommand(bench, exit_status);
  AddBenchBudgetCommand(bench, exit_status);
}

}  // namespace skein
