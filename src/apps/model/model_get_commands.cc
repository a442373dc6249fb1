#include "apps/model/model_get_commands.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "apps/model/gguf_convert.h"
#include "apps/model/known_models.h"
#include "apps/model/model_cache.h"
#include "apps/model/model_fetch.h"
#include "apps/model/write_progress.h"

namespace skein {
namespace {

int ExitStatus(const char* command, const Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "skein model %s: %s\n", command, status.message().c_str());
  return 1;
}

Status List() {
  SKEIN_ASSIGN_OR_RETURN(const std::string cache, CacheDir());
  for (const KnownModel& model : KnownModels()) {
    SKEIN_ASSIGN_OR_RETURN(const bool there, IsUpToDate(model, cache));
    std::printf("%-16s %s%s\n", model.name.c_str(), model.about.c_str(), there ? "; fetched" : "");
  }
  return Status::Ok();
}

// An empty name is that of the default model.
Status Fetch(const std::string& name) {
  const std::optional<KnownModel> model = name.empty() ? DefaultKnownModel() : FindKnownModel(name);
  if (!model) {
    std::string known;
    for (const KnownModel& entry : KnownModels()) known += " " + entry.name;
    return Status(StatusCode::kNotFound, "no known model '" + name + "'; known are" + known);
  }
  SKEIN_ASSIGN_OR_RETURN(const std::string cache, CacheDir());
  SKEIN_ASSIGN_OR_RETURN(const std::string dir, FetchModel(*model, cache));
  std::printf("%s\n", dir.c_str());
  return Status::Ok();
}

Status Convert(GgufConvertOptions options, const std::string& dtype) {
  options.dtype = dtype == "f32" ? DType::kF32 : DType::kBf16;
  options.progress = WriteProgress();
  const auto start = std::chrono::steady_clock::now();
  SKEIN_ASSIGN_OR_RETURN(const GgufConvertSummary summary, ConvertGguf(options));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::printf("%s: %lld parameters, %lld bytes of weights, in %.2f s\n", options.dir.c_str(),
              static_cast<long long>(summary.num_parameters),
              static_cast<long long>(summary.weight_bytes), elapsed.count());
  return Status::Ok();
}

}  // namespace

void AddModelFetchCommand(CLI::App* model, int* exit_status) {
  struct FetchCommand {
    std::string name;
    bool list = false;
  };
  auto options = std::make_shared<FetchCommand>();
  CLI::App* fetch =
      model->add_subcommand("fetch", "Get a known model into the cache and print its directory");
  fetch->add_option("NAME", options->name, "Its name; default: the first of --list");
  fetch->add_flag("--list", options->list, "List the known models instead");
  fetch->callback([options, exit_status] {
    *exit_status = ExitStatus("fetch", options->list ? List() : Fetch(options->name));
  });
}

void AddModelConvertCommand(CLI::App* model, int* exit_status) {
  struct ConvertCommand {
    GgufConvertOptions convert;
    std::string dtype = "bf16";
  };
  auto options = std::make_shared<ConvertCommand>();
  CLI::App* convert = model->add_subcommand("convert", "Make a model directory of a GGUF file");
  convert->add_option("FILE", options->convert.file, "The GGUF file")->required();
  convert->add_option("DIR", options->convert.dir, "The directory to write")->required();
  convert
      ->add_option("--adapter", options->convert.adapter_dir,
                   "Directory of a LoRA adapter (PEFT) to merge into the weights")
      ->check(CLI::ExistingDirectory);
  convert->add_option("--dtype", options->dtype, "Type of the weights")
      ->check(CLI::IsMember({"bf16", "f32"}))
      ->capture_default_str();
  convert->add_flag("--force", options->convert.force, "Replace the model that is in DIR");
  convert->callback([options, exit_status] {
    *exit_status = ExitStatus("convert", Convert(options->convert, options->dtype));
  });
}

}  // namespace skein
