#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "bench/bench_command.h"
#include "bench/bench_model.h"
#include "bench/serving/load_report.h"
#include "engine/cost_profile.h"
#include "server/json/json.h"

namespace skein {
namespace {

struct JctBenchOptions {
  BenchModel model;
  std::string json;
  int32_t every = 200;
  int32_t max_tokens = 2000;
  int32_t repetitions = 3;
  bool no_prediction = false;
};

struct InputPair {
  ProfileRow row;
  double fit_us = 0;       // the time to which the model is fitted
  double measured_us = 0;  // the time with which the model is compared, from other runs
};

double Correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const Distribution a = Summarize(x), b = Summarize(y);
  double products = 0;
  for (size_t i = 0; i < x.size(); ++i) products += (x[i] - a.mean) * (y[i] - b.mean);
  return products / static_cast<double>(x.size()) / (a.std * b.std);
}

// Measures all pairs of (input, cached) tokens in steps of `every`, with at least one new token.
std::vector<InputPair> MeasurePairs(const JctBenchOptions& options, StepProfiler& profiler) {
  std::vector<InputPair> pairs;
  for (int32_t input = options.every; input <= options.max_tokens; input += options.every) {
    for (int32_t cached = 0; cached < input; cached += options.every) {
      pairs.push_back({.row = {.new_tokens = input - cached, .cached_tokens = cached}});
    }
  }
  profiler.MeasureUs({&pairs.back().row, 1});
  const auto measure = [&](const InputPair& pair) {
    return profiler.MedianUs({&pair.row, 1}, options.repetitions);
  };
  for (InputPair& pair : pairs) pair.fit_us = measure(pair);
  for (InputPair& pair : pairs) pair.measured_us = measure(pair);
  return pairs;
}

Json Report(const std::vector<InputPair>& pairs) {
  std::vector<CostSample> samples;
  for (const InputPair& pair : pairs) {
    samples.push_back({WorkOf(pair.row.new_tokens, pair.row.cached_tokens), pair.fit_us});
  }
  const CostFit fit = FitCosts(samples);
  std::vector<double> missing, predicted, measured, errors;
  Json rows = Json::array();
  fmt::print("{:>8}{:>8}{:>14}{:>14}\n", "input", "cached", "measured ms", "fit ms");
  for (const InputPair& pair : pairs) {
    const double us = PredictUs(fit, WorkOf(pair.row.new_tokens, pair.row.cached_tokens));
    missing.push_back(pair.row.new_tokens);
    predicted.push_back(us);
    measured.push_back(pair.measured_us);
    errors.push_back(std::abs(us / pair.measured_us - 1));
    const int32_t input = pair.row.new_tokens + pair.row.cached_tokens;
    fmt::print("{:>8}{:>8}{:>14.2f}{:>14.2f}\n", input, pair.row.cached_tokens,
               pair.measured_us / 1e3, us / 1e3);
    rows.push_back({{"input_tokens", input},
                    {"cached_tokens", pair.row.cached_tokens},
                    {"measured_us", pair.measured_us},
                    {"predicted_us", us}});
  }
  const double proxy = Correlation(missing, measured);
  const double model = Correlation(predicted, measured);
  std::ranges::sort(errors);
  fmt::print("correlation with the measured times: missing tokens {:.4f}, fitted model {:.4f}\n",
             proxy, model);
  fmt::print("error of the fitted model: median {:.1f} %, p95 {:.1f} %\n",
             100 * Quantile(errors, 0.5), 100 * Quantile(errors, 0.95));
  return {{"date", BenchDate()},
          {"correlation_proxy", proxy},
          {"correlation_model", model},
          {"median_error", Quantile(errors, 0.5)},
          {"p95_error", Quantile(errors, 0.95)},
          {"fit",
           {{"step_us", fit.step_us},
            {"token_us", fit.token_us},
            {"pair_us", fit.pair_us},
            {"row_us", fit.row_us}}},
          {"pairs", std::move(rows)}};
}

// Predicts times like a server that computes prompts in one step, whatever its token budget
// (ProfileLimitsOf): a model is fitted to the profile that the server measures at its start. It
// predicts single passes, in random order, and each pass corrects it.
Json Foretell(const std::vector<InputPair>& pairs, StepProfiler& profiler, const Clock& clock,
              const CostProfileLimits& limits) {
  CostModel model(FitCosts(ProfileCosts(profiler, clock, limits)));
  std::vector<size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  Random random(1);
  for (size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random.Between(0, i)]);
  std::vector<double> errors;
  for (const size_t i : order) {
    const ProfileRow& row = pairs[i].row;
    const StepWork work = WorkOf(row.new_tokens, row.cached_tokens);
    const double us = profiler.MeasureUs({&row, 1});
    errors.push_back(std::abs(model.PredictUs(work) / us - 1));
    model.Observe(work, us);
  }
  std::ranges::sort(errors);
  fmt::print(
      "error of the start's profile, corrected online, on single passes: median {:.1f} %, "
      "p95 {:.1f} %\n",
      100 * Quantile(errors, 0.5), 100 * Quantile(errors, 0.95));
  return {{"median_error", Quantile(errors, 0.5)},
          {"p95_error", Quantile(errors, 0.95)},
          {"versions", model.version()}};
}

Status RunJctBench(const JctBenchOptions& options) {
  if (options.max_tokens < 2 * options.every) {
    return {StatusCode::kInvalidArgument,
            fmt::format("max-tokens is {}, must be at least twice --every, {}", options.max_tokens,
                        options.every),
            "max-tokens"};
  }
  SKEIN_ASSIGN_OR_RETURN(CpuRuntimeOptions runtime_options, RuntimeOptionsOf(options.model));
  runtime_options.max_model_len = options.max_tokens;
  runtime_options.max_num_seqs = 1;
  runtime_options.max_num_batched_tokens = options.max_tokens;
  runtime_options.num_kv_blocks = BlocksFor(options.max_tokens);
  SKEIN_ASSIGN_OR_RETURN(const auto runtime, CpuRuntime::Load(runtime_options));
  const MonotonicClock clock;
  StepProfiler profiler(&runtime->executor(), &clock, runtime->config().vocab_size,
                        runtime->num_kv_blocks(), OutputOf(runtime->config().head));
  const std::vector<InputPair> pairs = MeasurePairs(options, profiler);
  Json json = Report(pairs);
  if (!options.no_prediction) {
    json["ttft_prediction"] =
        Foretell(pairs, profiler, clock,
                 {.max_step_tokens = options.max_tokens, .max_model_len = options.max_tokens});
  }
  return WriteBenchJson(options.json, json);
}

}  // namespace

void AddBenchJctCommand(CLI::App* bench, int* exit_status) {
  auto options = std::make_shared<JctBenchOptions>();
  CLI::App* app = bench->add_subcommand(
      "jct",
      "Profile a model over pairs of input and cached tokens: how well missing tokens and a "
      "fitted model tell the time of a prefill");
  AddBenchModelOptions(app, &options->model);
  app->add_option("--every", options->every, "Tokens between two pairs")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--max-tokens", options->max_tokens, "The longest input")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  app->add_option("--repetitions", options->repetitions, "Passes per pair; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app->add_flag("--no-prediction", options->no_prediction,
                "Leave out how well the profile of a server's start foretells single passes");
  AddJsonOption(app, &options->json);
  RunOnBench(app, options, exit_status, RunJctBench);
}

}  // namespace skein
