#include "bench/bench_model.h"

#include <CLI/CLI.hpp>

#include "apps/host/choice.h"
#include "apps/host/model_choices.h"
#include "apps/model/model_cache.h"
#include "bench/bench_command.h"

namespace skein {

void AddBenchModelOptions(CLI::App* app, BenchModel* model) {
  AddModelDirOption(app, &model->model);
  AddThreadsOption(app, &model->threads);
  AddDtypeOption(app, &model->dtype);
}

void AddQuantizationOption(CLI::App* app, BenchModel* model) {
  AddChoice(app, "--quantization", &model->quantization,
            "Weights: auto (as in the file), none, int8, q8_0 or int4");
}

void AddKvCacheOption(CLI::App* app, KvCacheType* kv_cache_dtype) {
  AddChoice(app, "--kv-cache-dtype", kv_cache_dtype,
            "Keys and values: auto (the compute type) or int8");
}

Result<CpuRuntimeOptions> RuntimeOptionsOf(const BenchModel& model) {
  CpuRuntimeOptions options;
  SKEIN_ASSIGN_OR_RETURN(options.model_dir, FindModelDir(model.model));
  options.dtype = model.dtype;
  options.quantization = model.quantization;
  options.kv_cache_dtype = model.kv_cache_dtype;
  options.threads = model.threads;
  return options;
}

}  // namespace skein
