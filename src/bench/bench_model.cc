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
            "Weights: auto (as in the file), none, int8 or int4");
}

Result<CpuRuntimeOptions> RuntimeOptionsOf(const BenchModel& model) {
  CpuRuntimeOptions options;
  SKEIN_ASSIGN_OR_RETURN(options.model_dir, FindModelDir(model.model));
  options.dtype = model.dtype;
  options.quantization = model.quantization;
  options.threads = model.threads;
  return options;
}

}  // namespace skein
