#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "bench/bench_command.h"
#include "bench/sched/rounds.h"
#include "bench/sched/sched.h"
#include "server/json/json.h"

namespace skein {
namespace {

struct SchedBenchOptions : TreeBenchOptions {
  std::string json;
  int32_t num_waiting = 500;
  std::vector<int32_t> queues = {10, 1000, 100'000};
  int32_t num_rounds = 2000;
};

void PrintTree(const Json& tree) {
  fmt::print("chunked hash tree: {} requests of {} tokens in {} groups, chunks of {}\n",
             tree["requests"].get<int>(), tree["tokens"].get<int>(), tree["groups"].get<int>(),
             tree["chunk_tokens"].get<int>());
  // The mean times that operations may take. Hashing has no limit, since the prefix cache needs it
  // anyway.
  constexpr std::pair<const char*, double> kTargets[] = {{"hash_ns", 0},
                                                         {"insert_ns", 15'000},
                                                         {"add_ns", 3000},
                                                         {"finish_ns", 3000},
                                                         {"find_best_ns", 1000}};
  for (const auto& [name, target] : kTargets) {
    const auto ns = tree[name].get<double>();
    const char* verdict = ns <= target ? "reached" : "missed";
    fmt::print("  {:<14}{:>10.0f}{}\n", name, ns,
               target > 0 ? fmt::format("  target {:>6.0f}: {}", target, verdict) : "");
  }
}

void PrintRows(const Json& rows) {
  for (const auto& [name, value] : rows.front().items()) fmt::print("{:>15}", name);
  fmt::print("\n");
  for (const Json& row : rows) {
    for (const auto& [name, value] : row.items()) {
      if (value.is_number_float()) {
        fmt::print("{:>15.1f}", value.get<double>());
      } else {
        fmt::print("{:>15}", value.is_string() ? value.get<std::string>() : value.dump());
      }
    }
    fmt::print("\n");
  }
}

Status RunSchedBench(const SchedBenchOptions& options) {
  if (options.num_suffix_tokens >= options.num_tokens) {
    return {StatusCode::kInvalidArgument, "--suffix must be below --tokens", "suffix"};
  }
  if (options.batch_size >= options.num_requests) {
    return {StatusCode::kInvalidArgument, "--batch must be below --requests", "batch"};
  }
  Json json;
  json["date"] = BenchDate();
  json["tree"] = BenchTree(options);
  PrintTree(json["tree"]);
  TreeBenchOptions small = options;  // at one token per chunk, a hash vector has 40 KB
  small.num_requests = std::min(options.num_requests, 1000);
  small.batch_size = std::min(options.batch_size, 200);
  small.num_turns = std::min(options.num_turns, 2000);
  json["chunks"] = BenchChunkSizes(small);
  PrintRows(json["chunks"]);
  json["overhead"] = BenchOverhead(options.num_waiting, options.num_groups);
  PrintRows(json["overhead"]);
  SKEIN_ASSIGN_OR_RETURN(json["rounds"], BenchRounds(options.queues, options.num_rounds));
  PrintRows(json["rounds"]);
  return WriteBenchJson(options.json, json);
}

}  // namespace

void AddBenchSchedCommand(CLI::App* bench, int* exit_status) {
  auto options = std::make_shared<SchedBenchOptions>();
  CLI::App* app = bench->add_subcommand(
      "sched", "The cost of scheduling: the chunked hash tree, and rounds beside other orders");
  const auto count = [&](const char* name, int32_t* value, const char* what, int32_t most) {
    app->add_option(name, *value, what)->check(CLI::Range(1, most))->capture_default_str();
  };
  count("--requests", &options->num_requests, "Requests in the tree", 1'000'000);
  count("--tokens", &options->num_tokens, "Tokens of each, the suffix included", 1'000'000);
  count("--groups", &options->num_groups, "Groups that share all but the suffix", 1000);
  count("--suffix", &options->num_suffix_tokens, "Tokens of each one's own", 1'000'000);
  count("--batch", &options->batch_size, "Requests in the batch", 100'000);
  count("--turns", &options->num_turns, "Requests that come and go while it is measured",
        10'000'000);
  count("--waiting", &options->num_waiting, "Requests that wait while a round is measured", 10'000);
  count("--rounds", &options->num_rounds, "Rounds of each order and queue", 10'000'000);
  app->add_option("--queues", options->queues, "Requests that wait in these rounds")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  AddJsonOption(app, &options->json);
  RunOnBench(app, options, exit_status, RunSchedBench);
}

}  // namespace skein
