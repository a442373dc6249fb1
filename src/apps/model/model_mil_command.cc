#include "apps/model/model_mil_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "apps/host/choice.h"
#include "apps/host/help.h"
#include "apps/host/model_choices.h"
#include "apps/model/mil_gpu.h"
#include "apps/model/mil_prove.h"
#include "apps/model/mil_run.h"
#include "apps/model/model_cache.h"
#include "base/byte_size.h"
#include "base/threads/thread_team.h"
#include "bench/bench_command.h"
#include "runtime/memory_plan.h"
#include "server/json/json.h"

namespace skein {
namespace {

constexpr double kOver = 1.05;  // an input of this times the longest one must not fit

struct ModelMilOptions {
  MilRunOptions run;
  std::string memory = "2GiB";
  std::vector<std::string> gpus;
  std::string prove;
  std::string json;
  std::vector<std::string> modes;
  std::vector<int32_t> chunks;
  int32_t time_tokens = 0;
  int32_t repetitions = 3;
  int32_t warm_up_tokens = 0;  // 0: time_tokens
  // Set in a child process, which makes this one run.
  std::string run_mode;
  int32_t run_tokens = 0;
};

// The facts about a model and this machine that are known before the model is loaded.
struct Setting {
  ModelConfig config;
  DType dtype = DType::kBf16;
  int threads = 1;
  std::vector<const PrefillMode*> modes;

  int32_t MaxTokens(const PrefillMode& mode, int64_t memory_bytes) const {
    return MaxInputTokens(config, dtype, mode, memory_bytes, threads);
  }
};

Result<Setting> ReadSetting(ModelMilOptions* options) {
  SKEIN_ASSIGN_OR_RETURN(options->run.model_dir, FindModelDir(options->run.model_dir));
  Setting setting;
  SKEIN_ASSIGN_OR_RETURN(setting.config, LoadModelConfig(options->run.model_dir));
  setting.dtype = ChooseComputeType(options->run.dtype, setting.config.file_dtype);
  setting.threads = ThreadsOrAll(options->run.threads);
  for (const PrefillMode& mode : PrefillModes()) {
    const bool wanted = options->modes.empty() ||
                        std::ranges::find(options->modes, mode.name) != options->modes.end();
    if (wanted) setting.modes.push_back(&mode);
  }
  return setting;
}

// Runs the longest input that the planned memory allows, and a longer input until it exceeds the
// memory.
Json Prove(const ModelMilOptions& options, const Setting& setting, const PrefillMode& mode,
           int64_t memory_bytes) {
  const int32_t longest = setting.MaxTokens(mode, memory_bytes);
  Json proof;
  for (const bool over : {false, true}) {
    const auto tokens = static_cast<int32_t>(over ? static_cast<double>(longest) * kOver : longest);
    Json& entry = proof[over ? "over" : "under"];
    entry["input_tokens"] = tokens;
    if (tokens < 1 || tokens > setting.config.max_position) {
      entry["skipped"] = fmt::format("the model takes 1 to {} tokens", setting.config.max_position);
      continue;
    }
    std::vector<std::string> command = {"/proc/self/exe",
                                        "model",
                                        "mil",
                                        options.run.model_dir,
                                        "--run-mode",
                                        std::string(mode.name),
                                        "--run-tokens",
                                        std::to_string(tokens),
                                        "--dtype",
                                        std::string(NameOf(options.run.dtype)),
                                        "--threads",
                                        std::to_string(setting.threads)};
    entry["planned_bytes"] =
        RequestBytes(setting.config, setting.dtype, mode, tokens, setting.threads);
    Result<MilProof> run = WatchMilChild(command, over ? memory_bytes : 0);
    if (!run.ok()) {  // such as out of memory: the other modes are still run
      entry["error"] = run.status().message();
      fmt::print("  {:<20}{:>9} tokens: {}\n", mode.name, tokens, run.status().message());
      continue;
    }
    const bool fits = run->peak_bytes <= memory_bytes;
    entry["peak_bytes"] = run->peak_bytes;
    entry["fits"] = fits;
    entry["stopped"] = run->stopped;
    if (!run->stopped) entry["seconds"] = run->seconds;
    fmt::print("  {:<20}{:>9} tokens{:>10.1f} MiB peak, {}{}\n", mode.name, tokens,
               static_cast<double>(run->peak_bytes) / (1 << 20),
               fits ? "fits        " : "does not fit",
               run->stopped ? ": stopped" : fmt::format("{:>9.1f} s", run->seconds));
    std::fflush(stdout);
  }
  return proof;
}

Result<Json> Plan(const ModelMilOptions& options, const Setting& setting) {
  SKEIN_ASSIGN_OR_RETURN(const int64_t memory_bytes, ParseByteSize("memory", options.memory));
  Json json;
  json["date"] = BenchDate();
  json["model"] = setting.config.ArchitectureName();
  json["context_tokens"] = setting.config.max_position;
  json["threads"] = setting.threads;
  json["memory_bytes"] = memory_bytes;
  json["modes"] = Json::array();
  fmt::print("beside the weights {}; the model's context is {} tokens\n",
             FormatByteSize(memory_bytes), setting.config.max_position);
  for (const PrefillMode* mode : setting.modes) {
    const int32_t tokens = setting.MaxTokens(*mode, memory_bytes);
    const int64_t step = RequestBytes(setting.config, setting.dtype, *mode, 65536, 1) -
                         RequestBytes(setting.config, setting.dtype, *mode, 32768, 1);
    fmt::print("  {:<20}{:>9} tokens{:>10} bytes each\n", mode->name, tokens, step / 32768);
    json["modes"].push_back(
        {{"mode", mode->name}, {"max_input_tokens", tokens}, {"bytes_per_token", step / 32768}});
  }
  if (options.prove.empty()) return json;
  SKEIN_ASSIGN_OR_RETURN(const int64_t prove_bytes, ParseByteSize("prove", options.prove));
  json["prove_bytes"] = prove_bytes;
  fmt::print("in {}, measured:\n", FormatByteSize(prove_bytes));
  for (size_t i = 0; i < setting.modes.size(); ++i) {
    json["modes"][i]["proof"] = Prove(options, setting, *setting.modes[i], prove_bytes);
  }
  return json;
}

// The plans for GPUs with each of these memories.
Result<Json> PlanOnGpus(const ModelMilOptions& options, const Setting& setting) {
  Json json = {{"date", BenchDate()},
               {"model", setting.config.ArchitectureName()},
               {"context_tokens", setting.config.max_position},
               {"gpus", Json::array()}};
  fmt::print("the model's context is {} tokens\n", setting.config.max_position);
  for (const std::string& memory : options.gpus) {
    SKEIN_ASSIGN_OR_RETURN(Json plan,
                           PlanOnGpu(setting.config, setting.dtype, setting.modes, memory));
    json["gpus"].push_back(std::move(plan));
  }
  return json;
}

// The number of tokens that the mode computes at a time in a matrix product. `chunk_tokens` is that
// of hybrid execution; 0: the default.
int32_t TokensAtATime(const PrefillMode& mode, int32_t chunk_tokens, int32_t num_tokens) {
  if (mode.execution == Execution::kHybrid && chunk_tokens > 0) return chunk_tokens;
  const bool cut = mode.execution == Execution::kHybrid || mode.in_steps;
  return cut ? kHybridChunkTokens : num_tokens;
}

// Times the same prompt in every mode and chunk size, in alternating rounds.
Result<Json> Time(const ModelMilOptions& options, const Setting& setting) {
  struct Timed {
    const PrefillMode* mode;
    int32_t chunk_tokens;
    std::unique_ptr<MilRun> run;
    std::vector<double> seconds;
  };
  std::vector<Timed> all;
  for (const PrefillMode* mode : setting.modes) {
    std::vector<int32_t> chunks = {0};
    if (mode->execution == Execution::kHybrid && !options.chunks.empty()) chunks = options.chunks;
    for (const int32_t chunk : chunks) {
      MilRunOptions run = options.run;
      run.chunk_tokens = chunk;
      SKEIN_ASSIGN_OR_RETURN(std::unique_ptr<MilRun> loaded,
                             MilRun::Load(run, *mode, options.time_tokens));
      const int32_t at_a_time = TokensAtATime(*mode, chunk, options.time_tokens);
      all.push_back({mode, at_a_time, std::move(loaded), {}});
    }
  }
  const int32_t warm_up_tokens = options.warm_up_tokens > 0
                                     ? std::min(options.warm_up_tokens, options.time_tokens)
                                     : options.time_tokens;
  for (int32_t i = 0; i <= options.repetitions; ++i) {
    for (Timed& timed : all) {
      const double seconds = timed.run->Run(i > 0 ? options.time_tokens : warm_up_tokens);
      if (i > 0) timed.seconds.push_back(seconds);  // the first round warms up
      if (timed.run->values() == all.front().run->values()) continue;
      return Status(StatusCode::kInternal, fmt::format("{} reads other bits than {}",
                                                       timed.mode->name, all.front().mode->name));
    }
  }
  Json json = Json::array();
  fmt::print("{} tokens, median of {} runs in turns, equal bits:\n", options.time_tokens,
             options.repetitions);
  for (Timed& timed : all) {
    std::ranges::sort(timed.seconds);
    const double median = timed.seconds[timed.seconds.size() / 2];
    fmt::print("  {:<20}{:>6} at a time{:>10.2f} s{:>10.1f} tokens/s\n", timed.mode->name,
               timed.chunk_tokens, median, options.time_tokens / median);
    json.push_back({{"mode", timed.mode->name},
                    {"input_tokens", options.time_tokens},
                    {"chunk_tokens", timed.chunk_tokens},
                    {"seconds", timed.seconds},
                    {"tokens_per_s", options.time_tokens / median}});
  }
  return json;
}

Status RunChild(const ModelMilOptions& options) {
  MilRunOptions run = options.run;
  run.weights_loaded = TellWeightsLoaded;
  const PrefillMode* mode = FindPrefillMode(options.run_mode);
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<MilRun> loaded,
                         MilRun::Load(run, *mode, options.run_tokens));
  TellDone(loaded->Run(options.run_tokens));
  return Status::Ok();
}

Status RunModelMil(ModelMilOptions options) {
  if (!options.run_mode.empty()) return RunChild(options);
  SKEIN_ASSIGN_OR_RETURN(const Setting setting, ReadSetting(&options));
  if (!options.gpus.empty()) {
    SKEIN_ASSIGN_OR_RETURN(const Json json, PlanOnGpus(options, setting));
    return WriteBenchJson(options.json, json);
  }
  SKEIN_ASSIGN_OR_RETURN(Json json, Plan(options, setting));
  if (options.time_tokens > 0) {
    SKEIN_ASSIGN_OR_RETURN(json["times"], Time(options, setting));
  }
  return WriteBenchJson(options.json, json);
}

}  // namespace

void AddModelMilCommand(CLI::App* model, int* exit_status) {
  auto options = std::make_shared<ModelMilOptions>();
  std::vector<std::string> names;
  for (const PrefillMode& mode : PrefillModes()) names.emplace_back(mode.name);
  CLI::App* app = model->add_subcommand("mil", "How long an input a memory allows, by mode");
  app->add_option("MODEL", options->run.model_dir,
                  "A directory, or org/name in the local HuggingFace cache")
      ->required();
  app->add_option("--memory", options->memory, "Memory of a request beside the weights")
      ->capture_default_str();
  app->add_option(
         "--gpu", options->gpus,
         "Instead: for GPUs with so much memory, such as 24GB,80GB, which holds the weights, "
         "too; computed, not run")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->excludes("--memory");
  app->add_option("--prove", options->prove,
                  "Run each mode in so much memory, just as long as fits and longer, in a process "
                  "of its own, and measure its peak");
  app->add_option("--time", options->time_tokens,
                  "Time a prompt of so many tokens in each mode, in turns")
      ->check(CLI::Range(0, 1 << 24));
  app->add_option("--repetitions", options->repetitions, "Prompts of --time; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app->add_option("--warm-up", options->warm_up_tokens,
                  "Tokens of the run of each that does not count; 0: as many as those that do")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  app->add_option("--chunks", options->chunks, "Chunk sizes of hybrid modes that --time compares")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1 << 24));
  app->add_option("--modes", options->modes, "Only these")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(names));
  for (const char* runs : {"--prove", "--time"}) app->get_option(runs)->excludes("--gpu");
  AddChoice(app, "--dtype", &options->run.dtype, "Compute type: auto, bf16 or f32");
  app->add_option("--threads", options->run.threads,
                  "Threads that compute; 0: one per processor that it may run on")
      ->check(CLI::Range(0, 1024));
  app->add_option("--json", options->json, "Write the results to this file");
  app->add_option("--run-mode", options->run_mode)->check(CLI::IsMember(names))->group("");
  app->add_option("--run-tokens", options->run_tokens)->check(CLI::Range(1, 1 << 28))->group("");
  ShowFirst(app, {"--memory", "--gpu", "--prove", "--time", "--repetitions", "--chunks", "--modes",
                  "--dtype", "--threads", "--json"});
  app->callback([options, exit_status] {
    const Status status = RunModelMil(*options);
    if (status.ok()) return;
    std::fprintf(stderr, "skein model mil: %s\n", status.message().c_str());
    *exit_status = 1;
  });
}

}  // namespace skein
