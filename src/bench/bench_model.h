#pragma once

#include <cstdint>
#include <string>

#include "apps/cli_names.h"
#include "base/result.h"
#include "runtime/cpu_runtime.h"

namespace skein {

// The model that a benchmark runs on the CPU.
struct BenchModel {
  std::string model;  // a directory, or org/name in the local cache
  ComputeChoice dtype = ComputeChoice::kAuto;
  Quantization quantization = Quantization::kAuto;
  KvCacheType kv_cache_dtype = KvCacheType::kAuto;
  int32_t threads = 0;  // 0: one per processor
};

// Adds MODEL, --threads and --dtype.
void AddBenchModelOptions(CLI::App* app, BenchModel* model);
// Adds --quantization.
void AddQuantizationOption(CLI::App* app, BenchModel* model);
// Adds --kv-cache-dtype.
void AddKvCacheOption(CLI::App* app, KvCacheType* kv_cache_dtype);

// The options for CpuRuntime::Load, without the limits. Fails as FindModelDir does.
Result<CpuRuntimeOptions> RuntimeOptionsOf(const BenchModel& model);

}  // namespace skein
