#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "apps/bench_command.h"
#include "apps/bench_forward.h"
#include "apps/bench_limits.h"
#include "apps/model_host.h"
#include "io/model_dir.h"

namespace skein {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string model;
  std::string dtype = "auto";
  std::string quantization = "none";
  std::string json;
  std::vector<int32_t> prompt_tokens = {128, 512, 2048};
  std::vector<int32_t> batches = {1, 4, 16};
  int32_t context = 128;
  int32_t decode_steps = 16;
  int32_t repetitions = 3;
  int32_t threads = 0;
};

constexpr int kLimitRuns = 9;

Result<std::unique_ptr<CpuRuntime>> LoadRuntime(const Options& options) {
  SKEIN_ASSIGN_OR_RETURN(const std::string dir, ResolveModelDir(options.model));
  const int32_t longest = std::ranges::max(options.prompt_tokens);
  const int32_t batch = std::ranges::max(options.batches);
  const int32_t row = options.context + options.decode_steps + 1;
  CpuRuntimeOptions runtime;
  runtime.model_dir = dir;
  runtime.dtype = options.dtype;
  runtime.quantization = options.quantization;
  runtime.threads = options.threads;
  runtime.max_model_len = std::max(longest, row);
  runtime.max_num_seqs = batch;
  runtime.max_num_batched_tokens = std::max({longest, options.context, batch});
  runtime.num_kv_blocks = std::max(BlocksFor(longest), batch * BlocksFor(row));
  return CpuRuntime::Load(runtime);
}

WeightTypes TypesOf(const CpuRuntime& runtime) { return {runtime.dtype(), runtime.matrix_dtype()}; }

// Attention counts as if it ran in the matrices' type.
double Floor(const MachineLimits& limits, const CpuRuntime& runtime, const ForwardWork& work) {
  return RooflineSeconds(limits, runtime.isa(), runtime.matrix_dtype(), work.flops, work.bytes);
}

Json MeasurePrefill(const Options& options, const MachineLimits& limits, const CpuRuntime& runtime,
                    ForwardBench& bench) {
  Json points = Json::array();
  fmt::print("{:>14}{:>12}{:>12}{:>10}{:>10}\n", "prompt tokens", "ms", "tokens/s", "TFLOP/s",
             "fraction");
  for (const int32_t n : options.prompt_tokens) {
    const PrefillPoint point = bench.Prefill(n, options.repetitions);
    const ForwardWork work = WorkOf(runtime.config(), TypesOf(runtime), 1, 0, n);
    const double tflops = work.flops / point.seconds / 1e12;
    const double fraction = Floor(limits, runtime, work) / point.seconds;
    fmt::print("{:>14}{:>12.2f}{:>12.0f}{:>10.3f}{:>10.3f}\n", n, point.seconds * 1e3,
               n / point.seconds, tflops, fraction);
    points.push_back({{"prompt_tokens", n},
                      {"tokens_per_s", n / point.seconds},
                      {"tflops", tflops},
                      {"fraction", fraction}});
  }
  return points;
}

Json MeasureDecode(const Options& options, const MachineLimits& limits, const CpuRuntime& runtime,
                   ForwardBench& bench) {
  Json points = Json::array();
  fmt::print("{:>8}{:>9}{:>12}{:>12}{:>10}{:>10}\n", "batch", "context", "ms/step", "tokens/s",
             "GB/s", "fraction");
  for (const int32_t batch : options.batches) {
    const DecodePoint point = bench.Decode(batch, options.context, options.decode_steps);
    const int32_t middle = options.context + options.decode_steps / 2;
    const ForwardWork work = WorkOf(runtime.config(), TypesOf(runtime), batch, middle, 1);
    const double gbps = work.bytes / point.seconds / 1e9;
    const double fraction = Floor(limits, runtime, work) / point.seconds;
    fmt::print("{:>8}{:>9}{:>12.2f}{:>12.1f}{:>10.1f}{:>10.3f}\n", batch, options.context,
               point.seconds * 1e3, batch / point.seconds, gbps, fraction);
    points.push_back({{"batch", batch},
                      {"context", options.context},
                      {"tokens_per_s", batch / point.seconds},
                      {"gbps", gbps},
                      {"fraction", fraction}});
  }
  return points;
}

Status Run(const Options& options) {
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<CpuRuntime> runtime, LoadRuntime(options));
  ThreadTeam team(runtime->num_threads());
  SKEIN_ASSIGN_OR_RETURN(const MachineLimits limits, MeasureLimits(team, kLimitRuns));
  fmt::print("limits: {:.2f} TFLOP/s, {:.1f} GB/s read ({}, {}, {} threads)\n",
             limits.compute_tflops(runtime->isa(), runtime->matrix_dtype()), limits.read_gbps,
             NameOf(runtime->isa()), NameOf(runtime->matrix_dtype()), runtime->num_threads());
  ForwardBench bench(runtime.get(), /*seed=*/1);
  Json json;
  json["date"] = BenchDate();
  json["isa"] = NameOf(runtime->isa());
  json["threads"] = runtime->num_threads();
  json["quantization"] = options.quantization;
  json["limits"] = LimitsToJson(limits, runtime->isa(), runtime->matrix_dtype());
  json["prefill"] = MeasurePrefill(options, limits, *runtime, bench);
  json["decode"] = MeasureDecode(options, limits, *runtime, bench);
  return WriteBenchJson(options.json, json);
}

}  // namespace

void AddBenchForwardCommand(CLI::App* bench, int* exit_status) {
  auto options = std::make_shared<Options>();
  CLI::App* app =
      bench->add_subcommand("forward", "Time forward passes alone against what the machine allows");
  app->add_option("MODEL", options->model, "A model directory, or org/name in the local cache")
      ->required();
  app->add_option("--prompt-tokens", options->prompt_tokens, "Lengths of whole prompts")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--batch", options->batches, "Sequences that decode together")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app->add_option("--context", options->context, "Tokens before each decoded one")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--decode", options->decode_steps, "Decode steps of each batch")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app->add_option("--repetitions", options->repetitions,
                  "Passes per prompt length; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app->add_option("--threads", options->threads, "Threads that compute; 0: one per core")
      ->check(CLI::Range(0, 1024));
  app->add_option("--dtype", options->dtype, "Compute type: auto, bf16 or f32")
      ->capture_default_str();
  app->add_option("--quantization", options->quantization, "Weights: none, or int8")
      ->capture_default_str();
  app->add_option("--json", options->json, "Write the results to this file");
  app->callback([options, exit_status] {
    const Status status = Run(*options);
    if (status.ok()) return;
    std::fprintf(stderr, "skein bench forward: %s\n", status.message().c_str());
    *exit_status = 1;
  });
}

}  // namespace skein
