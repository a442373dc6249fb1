#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "apps/commands.h"
#include "apps/model/model_cache.h"
#include "apps/model/model_get_commands.h"
#include "apps/model/model_info.h"
#include "apps/model/model_init.h"
#include "apps/model/model_mil_command.h"
#include "base/threads/thread_team.h"
#include "io/safetensors_writer.h"
#include "model/config/shapes.h"

namespace skein {
namespace {

int Fail(const Status& status) {
  std::fprintf(stderr, "skein model: %s\n", status.message().c_str());
  return 1;
}

int RunInit(ModelInitOptions options, const std::string& dtype) {
  options.dtype = dtype == "f32" ? DType::kF32 : dtype == "f16" ? DType::kF16 : DType::kBf16;
  options.show_progress = isatty(STDERR_FILENO) != 0;
  const auto start = std::chrono::steady_clock::now();
  const Result<ModelInitSummary> summary = InitModel(options);
  if (!summary.ok()) return Fail(summary.status());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::printf("%s: a random %s, %lld parameters, %lld bytes of weights, in %.2f s\n",
              options.dir.c_str(), options.shape.c_str(),
              static_cast<long long>(summary.value().num_parameters),
              static_cast<long long>(summary.value().weight_bytes), elapsed.count());
  return 0;
}

// Weights that do not fit the config are reported in the output and by the exit status.
int RunInfo(const std::string& model, const std::string& json_path) {
  const Result<std::string> dir = FindModelDir(model);
  if (!dir.ok()) return Fail(dir.status());
  const Result<ModelInfo> info = DescribeModel(dir.value());
  if (!info.ok()) return Fail(info.status());
  const std::string json = ToJson(info.value()).dump(2) + "\n";
  if (json_path == "-") {
    std::fputs(json.c_str(), stdout);
  } else {
    std::fputs(ToText(info.value()).c_str(), stdout);
  }
  if (!json_path.empty() && json_path != "-") {
    const Status status = WriteFile(json_path, json);
    if (!status.ok()) return Fail(status);
  }
  return info.value().problems.empty() ? 0 : 1;
}

void AddInit(CLI::App* model, int* exit_status) {
  struct InitCommand {
    ModelInitOptions init;
    std::string dtype = "bf16";
  };
  auto options = std::make_shared<InitCommand>();
  options->init.num_threads = ThreadsOrAll(0);
  std::vector<std::string> shapes;
  for (const ModelShape& shape : ModelShapes()) shapes.emplace_back(shape.name);

  CLI::App* init = model->add_subcommand("init", "Write a random model of a real shape");
  init->add_option("--shape", options->init.shape, "The model whose shape it has")
      ->required()
      ->check(CLI::IsMember(shapes));
  init->add_option("--layers", options->init.num_layers,
                   "The number of layers, the first of the shape's, if it is too large with all")
      ->check(CLI::PositiveNumber)
      ->default_str("all");
  init->add_option("--dtype", options->dtype, "Type of the weights")
      ->check(CLI::IsMember({"bf16", "f16", "f32"}))
      ->capture_default_str();
  init->add_option("--seed", options->init.seed, "The same seed writes the same model")
      ->capture_default_str();
  init->add_option("--tokenizer", options->init.tokenizer_dir,
                   "Directory whose tokenizer is copied; without, tokens are bytes")
      ->check(CLI::ExistingDirectory);
  init->add_option("--shard-bytes", options->init.max_shard_bytes, "Most bytes of a weight file")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  init->add_option("--threads", options->init.num_threads, "Threads that write")
      ->check(CLI::Range(1, 1024))
      ->default_str("all processors");
  init->add_flag("--force", options->init.force, "Replace the model that is in DIR");
  init->add_option("DIR", options->init.dir, "The directory to write")->required();
  init->callback([options, exit_status] { *exit_status = RunInit(options->init, options->dtype); });
}

void AddInfo(CLI::App* model, int* exit_status) {
  struct InfoCommand {
    std::string model, json_path;
  };
  auto options = std::make_shared<InfoCommand>();
  CLI::App* info = model->add_subcommand("info", "Describe a model");
  info->add_option("MODEL", options->model,
                   "A directory, a fetched model, or org/name in the local HuggingFace cache")
      ->required();
  info->add_option("--json", options->json_path, "Write it as JSON, too; - for standard output");
  info->callback(
      [options, exit_status] { *exit_status = RunInfo(options->model, options->json_path); });
}

}  // namespace

void AddModelCommand(CLI::App* app, int* exit_status) {
  CLI::App* model = app->add_subcommand("model", "Get, make, describe and plan for models");
  model->require_subcommand(1);
  AddInit(model, exit_status);
  AddInfo(model, exit_status);
  AddModelFetchCommand(model, exit_status);
  AddModelConvertCommand(model, exit_status);
  AddModelMilCommand(model, exit_status);
}

}  // namespace skein
