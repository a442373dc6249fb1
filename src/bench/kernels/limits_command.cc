#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/threads/thread_team.h"
#include "bench/bench_command.h"
#include "bench/kernels/limits.h"

namespace skein {
namespace {

struct LimitsBenchOptions {
  std::string json;
  int runs = 31;
  int threads = 0;
};

Status RunLimitsBench(const LimitsBenchOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  ThreadTeam team(ThreadsOrAll(options.threads));
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<LimitMeter> meter, LimitMeter::Make(&team));
  const MachineLimits limits = MeasureLimits(*meter, isa, options.runs);
  nlohmann::ordered_json json;
  json["date"] = BenchDate();
  json["isa"] = NameOf(isa);
  json["threads"] = team.num_threads();
  json["limits"] = LimitsToJson(limits, isa, DType::kBf16);
  json["limits"]["fma_f32_tflops"] = limits.fma_f32_tflops;
  if (limits.amx_int8_tflops > 0) json["limits"]["amx_int8_tflops"] = limits.amx_int8_tflops;
  if (limits.avx512_bf16_tflops > 0) {
    json["limits"]["avx512_bf16_tflops"] = limits.avx512_bf16_tflops;
    fmt::print("AVX512 bf16 {:5.3f} TFLOP/s\n", limits.avx512_bf16_tflops);
  }
  if (limits.amx_bf16_tflops > 0) fmt::print("AMX bf16 {:8.3f} TFLOP/s\n", limits.amx_bf16_tflops);
  if (limits.amx_int8_tflops > 0) fmt::print("AMX int8 {:8.3f} TOP/s\n", limits.amx_int8_tflops);
  json["limits"]["vector_int8_tflops"] = limits.vector_int8_tflops;
  fmt::print("vector int8 {:5.3f} TOP/s\n", limits.vector_int8_tflops);
  fmt::print("FMA f32  {:8.3f} TFLOP/s\n", limits.fma_f32_tflops);
  fmt::print("read     {:8.1f} GB/s\n", limits.read_gbps);
  return WriteBenchJson(options.json, json);
}

}  // namespace

void AddBenchLimitsCommand(CLI::App* bench, int* exit_status) {
  auto options = std::make_shared<LimitsBenchOptions>();
  CLI::App* app = bench->add_subcommand(
      "limits", "The limits of this machine: arithmetic and reading, all threads together");
  app->add_option("--runs", options->runs, "Runs of each figure; medians are reported")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  AddThreadsOption(app, &options->threads);
  AddJsonOption(app, &options->json);
  RunOnBench(app, options, exit_status, RunLimitsBench);
}

}  // namespace skein
