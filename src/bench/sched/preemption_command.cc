#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "apps/host/choice.h"
#include "apps/host/device_choice.h"
#include "apps/host/help.h"
#include "apps/host/model_choices.h"
#include "bench/bench_command.h"
#include "bench/bench_model.h"
#include "bench/sched/preemption.h"
#include "cuda/device/cuda_device.h"
#include "cuda/device/fake_device.h"
#include "cuda/executor/cuda_runtime.h"
#include "server/json/json.h"

namespace skein {
namespace {

struct PreemptionCommandOptions {
  BenchModel model;
  DeviceChoice device = DeviceChoice::kCpu;
  std::string json;
  PreemptionBenchOptions bench;
};

// A model that is ready, and the members of the JSON that describe what computes it.
struct PreemptionRuntime {
  std::unique_ptr<Runtime> runtime;
  Json described;
};

Result<PreemptionRuntime> LoadOnCpu(const PreemptionCommandOptions& options,
                                    CpuRuntimeOptions runtime) {
  runtime.max_model_len = options.bench.prompt_tokens;
  runtime.max_num_seqs = 1;
  runtime.max_num_batched_tokens = options.bench.prompt_tokens;
  runtime.num_kv_blocks = BlocksFor(options.bench.prompt_tokens);
  SKEIN_ASSIGN_OR_RETURN(std::unique_ptr<CpuRuntime> loaded, CpuRuntime::Load(runtime));
  Json described = {{"isa", NameOf(loaded->isa())}, {"threads", loaded->num_threads()}};
  return PreemptionRuntime{std::move(loaded), std::move(described)};
}

Result<PreemptionRuntime> LoadOnGpu(const PreemptionCommandOptions& options,
                                    const CpuRuntimeOptions& runtime) {
  std::unique_ptr<cuda::Device> device = std::make_unique<cuda::FakeDevice>();
  if (options.device == DeviceChoice::kCuda) {
    SKEIN_ASSIGN_OR_RETURN(device, cuda::OpenCudaDevice(0));
  }
  Json described = {{"device", device->name()}};
  SKEIN_ASSIGN_OR_RETURN(
      std::unique_ptr<Runtime> loaded,
      cuda::LoadCudaRuntime({.model_dir = runtime.model_dir,
                             .dtype = runtime.dtype,
                             .quantization = runtime.quantization,
                             .threads = runtime.threads,
                             .max_model_len = options.bench.prompt_tokens,
                             .max_num_batched_tokens = options.bench.prompt_tokens,
                             .max_num_seqs = 1,
                             .num_kv_blocks = BlocksFor(options.bench.prompt_tokens)},
                            std::move(device)));
  return PreemptionRuntime{std::move(loaded), std::move(described)};
}

Result<PreemptionRuntime> LoadRuntime(const PreemptionCommandOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(const CpuRuntimeOptions runtime, RuntimeOptionsOf(options.model));
  if (options.device == DeviceChoice::kCpu) return LoadOnCpu(options, runtime);
  return LoadOnGpu(options, runtime);
}

Status RunPreemptionCommand(const PreemptionCommandOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(const PreemptionRuntime loaded, LoadRuntime(options));
  SKEIN_ASSIGN_OR_RETURN(
      const PreemptionReport report,
      RunPreemptionBench(loaded.runtime.get(), options.bench,
                         [](double seconds) { fmt::print(stderr, "about {:.0f} s\n", seconds); }));
  fmt::print("{} tokens; milliseconds from a signal to standstill\n", options.bench.prompt_tokens);
  fmt::print("{:>12}{:>9}{:>9}{:>10}{:>10}{:>10}{:>10}\n", "granularity", "signals", "stops",
             "mean", "p50", "p99", "max");
  for (const BlockingTimes& times : report.granularities) {
    fmt::print("{:>12}{:>9}{:>9}{:>10.3f}{:>10.3f}{:>10.3f}{:>10.3f}\n", times.granularity,
               times.count, times.stops, times.mean_ms, times.p50_ms, times.p99_ms, times.max_ms);
  }
  fmt::print(
      "undisturbed: {:.3f} s with a check before each ticket, {:.3f} s without: {:+.2f} % "
      "of throughput lost\n",
      report.checked_s, report.unchecked_s, 100 * (1 - report.unchecked_s / report.checked_s));
  Json json = {{"date", BenchDate()}};
  json.update(loaded.described);
  json["quantization"] = NameOf(options.model.quantization);
  json.update(PreemptionToJson(options.bench, report));
  return WriteBenchJson(options.json, json);
}

}  // namespace

void AddBenchPreemptionCommand(CLI::App* bench, int* exit_status) {
  auto options = std::make_shared<PreemptionCommandOptions>();
  PreemptionBenchOptions* o = &options->bench;
  CLI::App* app = bench->add_subcommand(
      "preemption", "Time from a signal to a long prefill's standing still, by granularity");
  AddBenchModelOptions(app, &options->model);
  AddQuantizationOption(app, &options->model);
  AddChoice(app, "--device", &options->device, "cpu, cuda (an NVIDIA GPU) or cuda-emulated");
  app->add_option("--prompt-tokens", o->prompt_tokens, "Tokens of the prefills that are stopped")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  app->add_option("--count", o->count,
                  "Signals for each granularity but chunk; 0: undisturbed prefills alone")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  app->add_option("--per-prefill", o->per_prefill, "Signals in one prefill, about")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--chunk-count", o->chunk_count,
                  "Signals at granularity chunk, in place of --count: its steps run to their end, "
                  "so each takes long")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  app->add_option("--chunk-tokens", o->chunk_tokens, "Tokens of a step at granularity chunk")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--repetitions", o->repetitions, "Undisturbed prefills; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app->add_option("--seed", o->seed, "Seed of the prompt and of the moments")
      ->capture_default_str();
  AddJsonOption(app, &options->json);
  ShowFirst(app, {"--threads", "--dtype", "--quantization", "--prompt-tokens", "--count",
                  "--chunk-count", "--chunk-tokens", "--repetitions", "--json"});
  RunOnBench(app, options, exit_status, RunPreemptionCommand);
}

}  // namespace skein
