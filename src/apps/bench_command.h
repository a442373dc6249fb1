#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

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
void AddBenchJctCommand(CLI::App* bench, int* exit_status);
void AddBenchBudgetCommand(CLI::App* bench, int* exit_status);
void AddBenchKernelsCommand(CLI::App* bench, int* exit_status);
void AddBenchQuantizationCommand(CLI::App* bench, int* exit_status);
void AddBenchPreemptionCommand(CLI::App* bench, int* exit_status);
void AddBenchSchedCommand(CLI::App* bench, int* exit_status);

// Writes a result, indented, with a line break at its end. Nothing if `path` is empty.
Status WriteBenchJson(const std::string& path, const nlohmann::ordered_json& json);

// Wall time as "20261121-011500", UTC.
std::string BenchDate();

}  // namespace skein
