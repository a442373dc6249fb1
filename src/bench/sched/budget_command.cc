#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "bench/bench_command.h"
#include "bench/bench_model.h"
#include "engine/cost_profile.h"
#include "server/json/json.h"

namespace skein {
namespace {

// A batch counts as large enough if it reaches this share of the best speed.
constexpr double kNearBest = 0.95;

struct BudgetBenchOptions {
  BenchModel model;
  std::string json;
  std::vector<int32_t> prompt_tokens = {32, 64, 128, 256};
  std::vector<int32_t> batches = {1, 2, 4, 8, 16, 32};
  std::vector<int32_t> chunks = {128, 256, 512, 1024, 2048};
  int32_t long_tokens = 4096;
  int32_t max_tokens = 2048;
  int32_t repetitions = 3;
};

struct BatchPoint {
  int32_t num_tokens = 0;  // of all prompts in the batch
  double tokens_per_s = 0;
};

// Measures batches of equal short prompts, each batch in one pass.
Json MeasureBatches(const BudgetBenchOptions& options, StepProfiler& profiler,
                    std::vector<BatchPoint>* points) {
  Json json = Json::array();
  fmt::print("{:>8}{:>8}{:>14}{:>12}{:>12}\n", "prompt", "batch", "batch tokens", "ms", "tokens/s");
  for (const int32_t prompt : options.prompt_tokens) {
    for (const int32_t batch : options.batches) {
      const int32_t num_tokens = prompt * batch;
      if (num_tokens > options.max_tokens) continue;
      const std::vector<ProfileRow> rows(batch, {.new_tokens = prompt});
      const double us = profiler.MedianUs(rows, options.repetitions);
      points->push_back({num_tokens, num_tokens / us * 1e6});
      fmt::print("{:>8}{:>8}{:>14}{:>12.2f}{:>12.0f}\n", prompt, batch, num_tokens, us / 1e3,
                 points->back().tokens_per_s);
      json.push_back({{"prompt_tokens", prompt},
                      {"batch", batch},
                      {"ms", us / 1e3},
                      {"tokens_per_s", points->back().tokens_per_s}});
    }
  }
  return json;
}

// Measures one long prompt, divided into chunks of each size.
Json MeasureChunks(const BudgetBenchOptions& options, StepProfiler& profiler) {
  Json json = Json::array();
  fmt::print("{:>8}{:>8}{:>26}{:>12}\n", "prompt", "chunk", "ms in all", "tokens/s");
  for (const int32_t chunk : options.chunks) {
    if (chunk > options.max_tokens) continue;
    double us = 0;
    for (int32_t begin = 0; begin < options.long_tokens; begin += chunk) {
      const ProfileRow row = {.new_tokens = std::min(chunk, options.long_tokens - begin),
                              .cached_tokens = begin};
      us += profiler.MedianUs({&row, 1}, options.repetitions);
    }
    const double tokens_per_s = options.long_tokens / us * 1e6;
    fmt::print("{:>8}{:>8}{:>26.2f}{:>12.0f}\n", options.long_tokens, chunk, us / 1e3,
               tokens_per_s);
    json.push_back({{"prompt_tokens", options.long_tokens},
                    {"chunk_tokens", chunk},
                    {"ms", us / 1e3},
                    {"tokens_per_s", tokens_per_s}});
  }
  return json;
}

// The fewest tokens with which a batch was nearly as fast as the fastest batch.
int32_t SuggestedTokens(const std::vector<BatchPoint>& points) {
  const double best = std::ranges::max_element(points, {}, &BatchPoint::tokens_per_s)->tokens_per_s;
  int32_t fewest = 0;
  for (const BatchPoint& point : points) {
    if (point.tokens_per_s < kNearBest * best) continue;
    if (fewest == 0 || point.num_tokens < fewest) fewest = point.num_tokens;
  }
  return fewest;
}

Result<std::unique_ptr<CpuRuntime>> LoadRuntime(const BudgetBenchOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(CpuRuntimeOptions runtime, RuntimeOptionsOf(options.model));
  runtime.max_model_len = std::max(options.long_tokens, options.max_tokens);
  runtime.max_num_seqs = 1;
  runtime.max_num_batched_tokens = options.max_tokens;
  // A row's last block may be nearly empty.
  runtime.num_kv_blocks =
      std::max(BlocksFor(options.long_tokens),
               BlocksFor(options.max_tokens) + std::ranges::max(options.batches));
  return CpuRuntime::Load(runtime);
}

Status RunBudgetBench(const BudgetBenchOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(const auto runtime, LoadRuntime(options));
  if (std::ranges::min(options.prompt_tokens) * std::ranges::min(options.batches) >
      options.max_tokens) {
    return {
        StatusCode::kInvalidArgument,
        fmt::format("max-tokens is {}, must be at least the smallest batch", options.max_tokens),
        "max-tokens"};
  }
  const MonotonicClock clock;
  StepProfiler profiler(&runtime->executor(), &clock, runtime->config().vocab_size,
                        runtime->num_kv_blocks(), OutputOf(runtime->config().head));
  profiler.MeasureUs(std::vector<ProfileRow>{{.new_tokens = options.max_tokens}});  // warm-up
  std::vector<BatchPoint> points;
  Json json = {{"date", BenchDate()}, {"model_id", options.model.model}};
  json["batches"] = MeasureBatches(options, profiler, &points);
  json["chunks"] = MeasureChunks(options, profiler);
  const int32_t suggested = SuggestedTokens(points);
  json["suggested_tokens"] = suggested;
  fmt::print("{} tokens: the smallest batch within {:.0f} % of the fastest\n", suggested,
             100 * (1 - kNearBest));
  return WriteBenchJson(options.json, json);
}

}  // namespace

void AddBenchBudgetCommand(CLI::App* bench, int* exit_status) {
  auto options = std::make_shared<BudgetBenchOptions>();
  CLI::App* app = bench->add_subcommand(
      "budget",
      "Prefill speed over the tokens of a batch and over the chunks of a long prompt: what "
      "--slo-batch-tokens and --chunk-tokens cost and gain");
  AddBenchModelOptions(app, &options->model);
  AddQuantizationOption(app, &options->model);
  const auto add_list = [app](const char* name, std::vector<int32_t>* values, const char* help) {
    app->add_option(name, *values, help)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
  };
  add_list("--prompt-tokens", &options->prompt_tokens, "Lengths of the short prompts");
  add_list("--batch", &options->batches, "How many of them in a pass");
  add_list("--chunks", &options->chunks, "Pieces of the long prompt");
  app->add_option("--long-tokens", options->long_tokens, "The long prompt")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--max-tokens", options->max_tokens, "Tokens of a pass; larger ones are left out")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--repetitions", options->repetitions, "Passes per point; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  AddJsonOption(app, &options->json);
  RunOnBench(app, options, exit_status, RunBudgetBench);
}

}  // namespace skein
