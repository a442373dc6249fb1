#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "bench/bench_command.h"
#include "bench/bench_model.h"
#include "bench/kernels/forward.h"
#include "bench/serving/load_report.h"
#include "bench/serving/rerank.h"
#include "server/json/json.h"

namespace skein {
namespace {

struct RerankBenchOptions {
  BenchModel model;
  std::string json;
  RerankShape shape;
  std::vector<int32_t> prompt_tokens = {512, 2150};
  int32_t batch_tokens = 2048;
  int32_t repetitions = 3;
};

int32_t BlocksOfStep(const RerankBenchOptions& options, int32_t row_tokens) {
  return (options.batch_tokens / row_tokens + 2) * (BlocksFor(row_tokens) + 1);
}

Result<std::unique_ptr<CpuRuntime>> LoadRuntime(const RerankBenchOptions& options) {
  const int32_t longest =
      std::max(options.shape.prompt_tokens(), std::ranges::max(options.prompt_tokens));
  SKEIN_ASSIGN_OR_RETURN(CpuRuntimeOptions runtime, RuntimeOptionsOf(options.model));
  runtime.max_model_len = longest;
  runtime.max_num_batched_tokens = options.batch_tokens;
  // A step must hold the longest prompt, and a full batch of short prompts, each of which leaves
  // part of its last block unused.
  int32_t step = 0;
  for (const int32_t n : options.prompt_tokens) step = std::max(step, BlocksOfStep(options, n));
  step = std::max(step, BlocksOfStep(options, options.shape.document_tokens));
  runtime.num_kv_blocks = BlocksFor(longest) + step;
  return CpuRuntime::Load(runtime);
}

// A batch of prompts of one length, about as many as have the rerank's work.
struct Batch {
  int32_t prompt_tokens = 0;
  int32_t count = 0;
  double flops = 0;
  std::vector<double> seconds;
  std::vector<double> ratios;  // the rerank's FLOP/s divided by the batch's, for each round
};

Batch BatchOf(const ModelConfig& config, int32_t prompt_tokens, double flops) {
  Batch batch;
  batch.prompt_tokens = prompt_tokens;
  const double one = LayerFlops(config, 1, 0, prompt_tokens, 1);
  batch.count = std::max(1, static_cast<int32_t>(std::lround(flops / one)));
  batch.flops = batch.count * one;
  return batch;
}

Status RunRerankBench(const RerankBenchOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<CpuRuntime> runtime, LoadRuntime(options));
  const double flops = RerankFlops(runtime->config(), options.shape);
  std::vector<Batch> batches;
  for (const int32_t n : options.prompt_tokens) {
    batches.push_back(BatchOf(runtime->config(), n, flops));
  }
  RerankBench bench(runtime.get(), options.batch_tokens, /*seed=*/1);
  SKEIN_RETURN_IF_ERROR(bench.Prefill(1, options.batch_tokens / 2).status());  // warm-up
  std::vector<double> seconds;
  RerankTime last;
  for (int32_t i = 0; i < options.repetitions; ++i) {
    SKEIN_ASSIGN_OR_RETURN(last, bench.Rerank(options.shape));
    seconds.push_back(last.seconds);
    for (Batch& batch : batches) {
      SKEIN_ASSIGN_OR_RETURN(const double s, bench.Prefill(batch.count, batch.prompt_tokens));
      batch.seconds.push_back(s);
      batch.ratios.push_back((last.seconds / flops) / (s / batch.flops));
    }
  }
  const double median = Median(seconds);
  Json json = {{"date", BenchDate()},
               {"isa", NameOf(runtime->isa())},
               {"threads", runtime->num_threads()},
               {"query_tokens", options.shape.query_tokens},
               {"documents", options.shape.documents},
               {"document_tokens", options.shape.document_tokens},
               {"batch_tokens", options.batch_tokens},
               {"repetitions", options.repetitions},
               {"flops", flops},
               {"seconds", median},
               {"gflops", flops / median / 1e9},
               {"computed_tokens", last.computed_tokens},
               {"shared_tokens", last.shared_tokens},
               {"batches", Json::array()}};
  fmt::print("rerank: {:.2f} s, {:.2f} TFLOP, {:.0f} GFLOP/s, {} tokens computed, {} shared\n",
             median, flops / 1e12, flops / median / 1e9, last.computed_tokens, last.shared_tokens);
  fmt::print("{:>14}{:>9}{:>10}{:>10}{:>22}\n", "batch prompts", "tokens", "s", "GFLOP/s",
             "rerank / its work");
  for (const Batch& batch : batches) {
    const double s = Median(batch.seconds);
    const double ratio = Median(batch.ratios);
    fmt::print("{:>14}{:>9}{:>10.2f}{:>10.0f}{:>22.3f}\n", batch.count, batch.prompt_tokens, s,
               batch.flops / s / 1e9, ratio);
    json["batches"].push_back({{"prompt_tokens", batch.prompt_tokens},
                               {"prompts", batch.count},
                               {"seconds", s},
                               {"gflops", batch.flops / s / 1e9},
                               {"ratio", ratio},
                               {"ratios", batch.ratios}});
  }
  return WriteBenchJson(options.json, json);
}

}  // namespace

void AddBenchRerankCommand(CLI::App* bench, int* exit_status) {
  auto options = std::make_shared<RerankBenchOptions>();
  CLI::App* app = bench->add_subcommand(
      "rerank",
      "Time documents behind one query against their floating-point work at the rate of a batch "
      "of prompts, in one run");
  const auto count = [app](const char* name, int32_t* value, const char* help, int32_t high) {
    app->add_option(name, *value, help)->check(CLI::Range(1, high))->capture_default_str();
  };
  AddBenchModelOptions(app, &options->model);
  count("--query-tokens", &options->shape.query_tokens, "Tokens of the query", 1 << 20);
  count("--documents", &options->shape.documents, "Documents", 4096);
  count("--document-tokens", &options->shape.document_tokens, "Tokens of each document", 1 << 20);
  app->add_option("--prompt-tokens", options->prompt_tokens,
                  "Lengths of the prompts that make the batches")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  count("--batch-tokens", &options->batch_tokens, "Tokens of one step", 1 << 20);
  count("--repetitions", &options->repetitions, "Turns of rerank and batches; medians count", 1000);
  AddJsonOption(app, &options->json);
  RunOnBench(app, options, exit_status, RunRerankBench);
}

}  // namespace skein
