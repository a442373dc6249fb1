#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/host/choice.h"
#include "apps/host/help.h"
#include "apps/host/model_choices.h"
#include "bench/bench_command.h"
#include "bench/bench_model.h"
#include "bench/sched/preemption.h"
#include "server/json/json.h"

namespace skein {
namespace {

struct PreemptionCommandOptions {
  BenchModel model;
  std::string json;
  PreemptionBenchOptions bench;
};

Result<std::unique_ptr<CpuRuntime>> LoadRuntime(const PreemptionCommandOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(CpuRuntimeOptions runtime, RuntimeOptionsOf(options.model));
  runtime.max_model_len = options.bench.prompt_tokens;
  runtime.max_num_seqs = 1;
  runtime.max_num_batched_tokens = options.bench.prompt_tokens;
  runtime.num_kv_blocks = BlocksFor(options.bench.prompt_tokens);
  return CpuRuntime::Load(runtime);
}

Json ToJson(const PreemptionCommandOptions& options, const CpuRuntime& runtime,
            const PreemptionReport& report) {
  Json json;
  json["date"] = BenchDate();
  json["isa"] = NameOf(runtime.isa());
  json["threads"] = runtime.num_threads();
  json["quantization"] = NameOf(options.model.quantization);
  json.update(PreemptionToJson(options.bench, report));
  return json;
}

Status RunPreemptionCommand(const PreemptionCommandOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<CpuRuntime> runtime, LoadRuntime(options));
  SKEIN_ASSIGN_OR_RETURN(const PreemptionReport report,
                         RunPreemptionBench(runtime.get(), options.bench, [](double seconds) {
                           fmt::print(stderr, "about {:.0f} s\n", seconds);
                         }));
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
  return WriteBenchJson(options.json, ToJson(options, *runtime, report));
}

}  // namespace

void AddBenchPreemptionCommand(CLI::App* bench, int* exit_status) {
  auto options = std::make_shared<PreemptionCommandOptions>();
  PreemptionBenchOptions* o = &options->bench;
  CLI::App* app = bench->add_subcommand(
      "preemption", "Time from a signal to a long prefill's standing still, by granularity");
  AddBenchModelOptions(app, &options->model);
  AddQuantizationOption(app, &options->model);
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
