#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "model/weights/weight_choices.h"
#include "skein/status.h"

namespace skein {

// The functions below each add a benchmark to `skein bench`. AddBenchCommand calls them.
void AddBenchServeCommand(CLI::App* bench, int* exit_status);
void AddBenchOfflineCommand(CLI::App* bench, int* exit_status);
void AddBenchDecideCommand(CLI::App* bench, int* exit_status);
void AddBenchTokenizerCommand(CLI::App* bench, int* exit_status);
void AddBenchLimitsCommand(CLI::App* bench, int* exit_status);
void AddBenchForwardCommand(CLI::App* bench, int* exit_status);
void AddBenchRerankCommand(CLI::App* bench, int* exit_status);
void AddBenchQualityCommand(CLI::App* bench, int* exit_status);
void AddBenchJctCommand(CLI::App* bench, int* exit_status);
void AddBenchBudgetCommand(CLI::App* bench, int* exit_status);
void AddBenchKernelsCommand(CLI::App* bench, int* exit_status);
void AddBenchQuantizationCommand(CLI::App* bench, int* exit_status);
void AddBenchPreemptionCommand(CLI::App* bench, int* exit_status);
void AddBenchSchedCommand(CLI::App* bench, int* exit_status);
void AddBenchGpuCommand(CLI::App* bench, int* exit_status);

// Options that benchmarks share; each has the same spelling in all of them.
void AddModelDirOption(CLI::App* app, std::string* model);  // MODEL, required
void AddThreadsOption(CLI::App* app, int32_t* threads);
void AddDtypeOption(CLI::App* app, ComputeChoice* dtype);
void AddJsonOption(CLI::App* app, std::string* path);

// Turns the result of a benchmark into its exit status. Reports an error on stderr.
int BenchExitStatus(const CLI::App& app, const Result<int>& result);
int BenchExitStatus(const CLI::App& app, const Status& status);

// Makes the command call run(*options), which returns a Status, or a Result<int> with the exit
// status.
template <typename Options, typename Run>
void RunOnBench(CLI::App* app, std::shared_ptr<Options> options, int* exit_status, Run run) {
  app->callback([=] { *exit_status = BenchExitStatus(*app, run(*options)); });
}

// Writes a result as indented JSON with a line break at its end. Writes nothing if `path` is empty.
Status WriteBenchJson(const std::string& path, const nlohmann::ordered_json& json);

// The current time as "20261121-011500", UTC.
std::string BenchDate();

}  // namespace skein
