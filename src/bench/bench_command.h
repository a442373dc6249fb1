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

// The benchmarks under `skein bench`; AddBenchCommand calls these.
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

// Options that benchmarks share, spelled alike in all.
void AddModelDirOption(CLI::App* app, std::string* model);  // MODEL, required
void AddThreadsOption(CLI::App* app, int32_t* threads);
void AddDtypeOption(CLI::App* app, ComputeChoice* dtype);
void AddJsonOption(CLI::App* app, std::string* path);

// The exit status of a benchmark that ended so; says on stderr what went wrong.
int BenchExitStatus(const CLI::App& app, const Result<int>& result);
int BenchExitStatus(const CLI::App& app, const Status& status);

// Has the command call run(*options), which returns a Status, or the exit status as Result<int>.
template <typename Options, typename Run>
void RunOnBench(CLI::App* app, std::shared_ptr<Options> options, int* exit_status, Run run) {
  app->callback([=] { *exit_status = BenchExitStatus(*app, run(*options)); });
}

// Writes a result, indented, with a line break at its end. Nothing if `path` is empty.
Status WriteBenchJson(const std::string& path, const nlohmann::ordered_json& json);

// Wall time as "20261121-011500", UTC.
std::string BenchDate();

}  // namespace skein
