#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "bench/bench_command.h"
#include "bench/bench_tokenizer.h"
#include "server/json/json.h"

namespace skein {
namespace {

struct TokenizerCommandOptions : TokenizerBenchOptions {
  std::string json;
};

void PrintTokenizerTable(const Json& result) {
  fmt::print("load {:.1f} ms\n", result["load_ms"].get<double>());
  fmt::print("{:<26}{:>9}{:>9}{:>12}{:>12}{:>12}\n", "text", "chars", "tokens", "encode us", "MB/s",
             "decode us");
  for (size_t i = 0; i < result["encode"].size(); ++i) {
    const Json& row = result["encode"][i];
    const auto us = row["us"].get<double>();
    fmt::print("{:<26}{:>9}{:>9}{:>12.2f}{:>12.1f}{:>12.2f}\n", row["name"].get<std::string>(),
               row["chars"].get<int64_t>(), row["tokens"].get<int64_t>(), us,
               row["bytes"].get<double>() / us, result["decode"][i]["us"].get<double>());
  }
  for (const Json& row : result["batch"]) {
    fmt::print("batch of {:<3}{:>12.2f} us\n", row["size"].get<int>(), row["us"].get<double>());
  }
  fmt::print("{} threads {:>12.2f} us per encode\n", result["concurrent"]["threads"].get<int>(),
             result["concurrent"]["us_per_encode"].get<double>());
  fmt::print("streamed decoding {:.4f} us per token\n", result["stream_decode_us"].get<double>());
  for (const char* name : {"first_sight", "one_letter"}) {
    fmt::print("{} of {} characters {:.0f} us\n", name, result[name]["chars"].get<int64_t>(),
               result[name]["us"].get<double>());
  }
}

Status RunTokenizerCommand(const TokenizerCommandOptions& options) {
  SKEIN_ASSIGN_OR_RETURN(const Json result, RunTokenizerBench(options));
  PrintTokenizerTable(result);
  return WriteBenchJson(options.json, result);
}

}  // namespace

void AddBenchTokenizerCommand(CLI::App* bench, int* exit_status) {
  auto options = std::make_shared<TokenizerCommandOptions>();
  CLI::App* app = bench->add_subcommand(
      "tokenizer", "Check a tokenizer, then time encoding, decoding and loading");
  app->add_option("dir", options->dir, "The folder of the tokenizer.json")->required();
  app->add_option("--samples", options->num_samples, "Samples of each figure; medians are reported")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app->add_option("--sample-us", options->sample_us, "About how long a sample repeats its call")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  app->add_option("--batch-threads", options->num_batch_threads, "Threads that share a batch")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app->add_option("--dump-texts", options->dump_texts,
                  "Write the texts and their ids to this file, a JSON value a line");
  AddJsonOption(app, &options->json);
  RunOnBench(app, options, exit_status, RunTokenizerCommand);
}

}  // namespace skein
