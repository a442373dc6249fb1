#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "apps/host/choice.h"
#include "apps/host/model_choices.h"
#include "bench/bench_command.h"
#include "bench/bench_model.h"
#include "bench/kernels/forward.h"
#include "bench/kernels/limits.h"
#include "bench/serving/load_report.h"
#include "runtime/free_memory.h"
#include "server/json/json.h"

namespace skein {
namespace {

struct ForwardBenchOptions {
  BenchModel model;
  std::string json;
  std::vector<int32_t> prompt_tokens = {128, 512, 2048};
  std::vector<int32_t> batches = {1, 4, 16};
  int32_t context = 128;
  int32_t decode_steps = 16;
  int32_t repetitions = 3;
};

Result<std::unique_ptr<CpuRuntime>> LoadRuntime(const ForwardBenchOptions& options) {
  const int32_t longest = std::ranges::max(options.prompt_tokens);
  const int32_t batch = std::ranges::max(options.batches);
  const int32_t row = options.context + options.decode_steps + 1;
  SKEIN_ASSIGN_OR_RETURN(CpuRuntimeOptions runtime, RuntimeOptionsOf(options.model));
  runtime.max_model_len = std::max(longest, row);
  runtime.max_num_seqs = batch;
  runtime.max_num_batched_tokens = std::max({longest, options.context, batch});
  runtime.num_kv_blocks = std::max(BlocksFor(longest), batch * BlocksFor(row));
  return CpuRuntime::Load(runtime);
}

// Measures a runtime together with the limits of this machine.
class ForwardReport {
 public:
  ForwardReport(const ForwardBenchOptions& options, CpuRuntime* runtime, LimitMeter* meter)
      : options_(options), runtime_(*runtime), meter_(*meter), bench_(runtime, /*seed=*/1) {}

  Json Prefill(int32_t prompt_tokens) {
    const ForwardWork work =
        WorkOf(runtime_.config(), KvBytes(), ElementBytes(), 1, 0, prompt_tokens);
    std::vector<double> seconds, fractions;
    bench_.Prefill(prompt_tokens);  // warm-up
    for (int32_t i = 0; i < options_.repetitions; ++i) {
      const MachineLimits before = Limits();
      seconds.push_back(bench_.Prefill(prompt_tokens));
      fractions.push_back(Floor(MeanOf(before, Limits()), work) / seconds.back());
    }
    const double median = Median(seconds), fraction = Median(fractions);
    fmt::print("{:>14}{:>12.2f}{:>12.0f}{:>10.3f}{:>10.3f}\n", prompt_tokens, median * 1e3,
               prompt_tokens / median, work.flops / median / 1e12, fraction);
    return {{"prompt_tokens", prompt_tokens},
            {"tokens_per_s", prompt_tokens / median},
            {"tflops", work.flops / median / 1e12},
            {"fraction", fraction}};
  }

  Json Decode(int32_t batch) {
    const int32_t middle = options_.context + options_.decode_steps / 2;
    const ForwardWork work = WorkOf(runtime_.config(), KvBytes(), ElementBytes(), batch, middle, 1);
    constexpr size_t kSteps = 4;  // steps between two measurements of the limits
    MachineLimits before;
    std::vector<double> few, fractions;
    const auto on_step = [&](int32_t step, double step_seconds) {
      if (step > 0) few.push_back(step_seconds);
      if (step > 0 && step < options_.decode_steps && few.size() < kSteps) return;
      const MachineLimits after = Limits();
      if (step > 0) fractions.push_back(Floor(MeanOf(before, after), work) / Median(few));
      before = after;
      few.clear();
    };
    const double seconds =
        bench_.Decode(batch, options_.context, options_.decode_steps, on_step).seconds;
    const double fraction = Median(fractions);
    fmt::print("{:>8}{:>9}{:>12.2f}{:>12.1f}{:>10.1f}{:>10.3f}\n", batch, options_.context,
               seconds * 1e3, batch / seconds, work.bytes / seconds / 1e9, fraction);
    return {{"batch", batch},
            {"context", options_.context},
            {"tokens_per_s", batch / seconds},
            {"gbps", work.bytes / seconds / 1e9},
            {"fraction", fraction}};
  }

  // The medians of all limits that were measured.
  MachineLimits MedianLimits() const { return MedianOf(limits_); }

 private:
  // The bytes of an element of the matrices. Blocks have several formats, with scales, so this is
  // the average of what is in memory.
  double ElementBytes() const {
    if (runtime_.matrix_dtype() != DType::kBlocks) {
      return static_cast<double>(SizeOf(runtime_.matrix_dtype()));
    }
    const ModelConfig& config = runtime_.config();
    const double separate =
        config.tie_embeddings ? 0 : double{1} * config.vocab_size * config.hidden_size;
    return static_cast<double>(runtime_.Memory().matrix_bytes) /
           (static_cast<double>(config.NumParameters()) - separate);
  }

  // The bytes of a token's keys and values.
  int64_t KvBytes() const { return runtime_.Memory().kv_block_bytes / kBlockTokens; }

  MachineLimits Limits() {
    limits_.push_back(meter_.Now(runtime_.isa(), runtime_.matrix_dtype()));
    return limits_.back();
  }

  // The least time of the work. Attention counts as if it were computed in the matrices' type.
  double Floor(const MachineLimits& limits, const ForwardWork& work) const {
    return RooflineSeconds(limits, runtime_.isa(), runtime_.matrix_dtype(), work.flops, work.bytes);
  }

  const ForwardBenchOptions& options_;
  const CpuRuntime& runtime_;
  LimitMeter& meter_;
  ForwardBench bench_;
  std::vector<MachineLimits> limits_;
};

Status RunForwardBench(const ForwardBenchOptions& options) {
  const int64_t resident_before = ResidentBytes();
  const auto begin = std::chrono::steady_clock::now();
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<CpuRuntime> runtime, LoadRuntime(options));
  const double load_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const ModelConfig& config = runtime->config();
  if (config.is_encoder() || config.head != Head::kLanguageModel) {
    return Status(StatusCode::kUnsupported, "only models that predict tokens can be timed; " +
                                                options.model.model + " has no output matrix");
  }
  ForwardBench(runtime.get(), /*seed=*/1).Prefill(options.prompt_tokens.front());
  const double resident_mib = static_cast<double>(ResidentBytes() - resident_before) / (1 << 20);
  fmt::print("loaded in {:.2f} s, {:.0f} MiB after a prompt of {}\n", load_s, resident_mib,
             options.prompt_tokens.front());
  ThreadTeam team(runtime->num_threads());
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<LimitMeter> meter, LimitMeter::Make(&team));
  ForwardReport bench(options, runtime.get(), meter.get());
  Json prefill = Json::array(), decode = Json::array();
  fmt::print("{:>14}{:>12}{:>12}{:>10}{:>10}\n", "prompt tokens", "ms", "tokens/s", "TFLOP/s",
             "fraction");
  for (const int32_t n : options.prompt_tokens) prefill.push_back(bench.Prefill(n));
  fmt::print("{:>8}{:>9}{:>12}{:>12}{:>10}{:>10}\n", "batch", "context", "ms/step", "tokens/s",
             "GB/s", "fraction");
  for (const int32_t batch : options.batches) decode.push_back(bench.Decode(batch));
  const MachineLimits limits = bench.MedianLimits();
  const DType dtype = runtime->matrix_dtype();
  fmt::print("limits meanwhile: {:.2f} TFLOP/s, {:.1f} GB/s read ({}, {}, {} threads)\n",
             limits.compute_tflops(runtime->isa(), dtype), limits.read_gbps, NameOf(runtime->isa()),
             NameOf(dtype), runtime->num_threads());
  return WriteBenchJson(options.json, {{"date", BenchDate()},
                                       {"isa", NameOf(runtime->isa())},
                                       {"threads", runtime->num_threads()},
                                       {"quantization", NameOf(options.model.quantization)},
                                       {"kv_cache_dtype", NameOf(options.model.kv_cache_dtype)},
                                       {"load_s", load_s},
                                       {"resident_mib", resident_mib},
                                       {"limits", LimitsToJson(limits, runtime->isa(), dtype)},
                                       {"prefill", std::move(prefill)},
                                       {"decode", std::move(decode)}});
}

}  // namespace

void AddBenchForwardCommand(CLI::App* bench, int* exit_status) {
  auto options = std::make_shared<ForwardBenchOptions>();
  CLI::App* app =
      bench->add_subcommand("forward", "Time forward passes alone against what the machine allows");
  AddBenchModelOptions(app, &options->model);
  AddQuantizationOption(app, &options->model);
  AddKvCacheOption(app, &options->model.kv_cache_dtype);
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
  AddJsonOption(app, &options->json);
  RunOnBench(app, options, exit_status, RunForwardBench);
}

}  // namespace skein
