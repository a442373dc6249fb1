#include "apps/model/model_get_commands.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/gguf/gguf_convert.h"
#include "apps/gguf/gguf_export.h"
#include "apps/model/known_models.h"
#include "apps/model/model_cache.h"
#include "apps/model/model_fetch.h"
#include "apps/model/write_progress.h"
#include "base/threads/thread_team.h"

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

// Fetches a model; an empty name means the default model.
Status Fetch(const std::string& name) {
  SKEIN_ASSIGN_OR_RETURN(const std::string dir,
                         FetchModel(name.empty() ? DefaultKnownModel().name : name));
  std::printf("%s\n", dir.c_str());
  return Status::Ok();
}

struct ConvertCommand {
  std::string from, to, adapter_dir;
  std::string dtype = "bf16", embedding_dtype, fallback_dtype;
  bool force = false;
  int num_threads = 0;
};

Status WriteDirectory(const ConvertCommand& command) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(command.from, error)) {
    return Status(StatusCode::kInvalidArgument,
                  command.from + " is no file. Of a GGUF file a directory is made, of a model's " +
                      "directory a file, whose name ends with .gguf; not " + command.to,
                  "to");
  }
  if (command.dtype != "bf16" && command.dtype != "f32") {
    return Status(StatusCode::kInvalidArgument,
                  "--dtype is " + command.dtype + "; a directory takes bf16 and f32", "dtype");
  }
  for (const auto& [name, value] : {std::pair("--embedding-dtype", &command.embedding_dtype),
                                    std::pair("--fallback-dtype", &command.fallback_dtype)}) {
    if (value->empty()) continue;
    return Status(StatusCode::kInvalidArgument, std::string(name) + " is for GGUF files; " +
                                                    command.to + " is to be a directory");
  }
  GgufConvertOptions options;
  options.file = command.from;
  options.dir = command.to;
  options.adapter_dir = command.adapter_dir;
  options.dtype = command.dtype == "f32" ? DType::kF32 : DType::kBf16;
  options.force = command.force;
  options.progress = WriteProgress();
  SKEIN_ASSIGN_OR_RETURN(const GgufConvertSummary summary, ConvertGguf(options));
  std::printf("%s: %lld parameters, %lld bytes of weights", command.to.c_str(),
              static_cast<long long>(summary.num_parameters),
              static_cast<long long>(summary.weight_bytes));
  return Status::Ok();
}

// The type of the embedding and the output matrix if the command names none: in models of 4 bits,
// these matrices keep 8, since they lose most.
std::string EmbeddingTypeOf(const ConvertCommand& command) {
  if (!command.embedding_dtype.empty()) return command.embedding_dtype;
  return command.dtype.starts_with("q4_") ? "q8_0" : command.dtype;
}

Status WriteGguf(const ConvertCommand& command) {
  GgufExportOptions options;
  SKEIN_ASSIGN_OR_RETURN(options.dir, FindModelDir(command.from));
  options.file = command.to;
  options.adapter_dir = command.adapter_dir;
  options.type = FindWritableGgufType(command.dtype);
  options.embedding_type = FindWritableGgufType(EmbeddingTypeOf(command));
  options.fallback_type = FindWritableGgufType(command.fallback_dtype);
  options.force = command.force;
  options.num_threads = ThreadsOrAll(command.num_threads);
  options.progress = WriteProgress();
  SKEIN_ASSIGN_OR_RETURN(const GgufExportSummary summary, ExportGguf(options));
  std::printf("%s: %lld parameters, %lld bytes", command.to.c_str(),
              static_cast<long long>(summary.num_parameters),
              static_cast<long long>(summary.file_bytes));
  if (summary.num_fallbacks > 0) {
    std::printf(", %lld matrices in %s", static_cast<long long>(summary.num_fallbacks),
                options.fallback_type->name);
  }
  return Status::Ok();
}

Status Convert(const ConvertCommand& command) {
  const auto start = std::chrono::steady_clock::now();
  SKEIN_RETURN_IF_ERROR(command.to.ends_with(".gguf") ? WriteGguf(command)
                                                      : WriteDirectory(command));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::printf(", in %.2f s\n", elapsed.count());
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
  std::vector<std::string> types;
  for (const GgufType* type : WritableGgufTypes()) {
    types.push_back(CLI::detail::to_lower(type->name));
  }
  auto options = std::make_shared<ConvertCommand>();
  CLI::App* convert = model->add_subcommand(
      "convert", "Make a model directory of a GGUF file, or a GGUF file of a model directory");
  convert
      ->add_option("FROM", options->from,
                   "A GGUF file; or a directory, a fetched model, or org/name in the local cache")
      ->required();
  convert->add_option("TO", options->to, "What to write: a directory; or a file, NAME.gguf")
      ->required();
  convert
      ->add_option("--adapter", options->adapter_dir,
                   "Directory of a LoRA adapter (PEFT) to merge into the weights")
      ->check(CLI::ExistingDirectory);
  convert
      ->add_option("--dtype", options->dtype,
                   "Type of the weights: of a directory bf16 or f32, of a file's matrices any")
      ->check(CLI::IsMember(types))
      ->capture_default_str();
  convert
      ->add_option("--embedding-dtype", options->embedding_dtype,
                   "Type of a file's embedding and output matrix")
      ->check(CLI::IsMember(types))
      ->default_str("q8_0 with q4_0 and q4_k, else that of --dtype");
  convert
      ->add_option("--fallback-dtype", options->fallback_dtype,
                   "Type of a file's matrices whose rows are no whole blocks of --dtype")
      ->check(CLI::IsMember(types))
      ->default_str("none: such a matrix is an error");
  convert->add_flag("--force", options->force, "Replace what is at TO");
  convert->add_option("--threads", options->num_threads, "Threads that round a file's weights")
      ->check(CLI::Range(1, 1024))
      ->default_str("all processors");
  convert->callback(
      [options, exit_status] { *exit_status = ExitStatus("convert", Convert(*options)); });
}

}  // namespace skein
