#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/commands.h"
#include "apps/host/choice.h"
#include "apps/host/help.h"
#include "apps/host/scheduling_options.h"
#include "apps/sim/sim_calibrate.h"
#include "apps/sim/sim_replay.h"
#include "apps/sim/step_log.h"
#include "apps/sim/stop_table_writer.h"
#include "base/byte_size.h"
#include "bench/bench_command.h"
#include "bench/bench_model.h"
#include "bench/sched/candidates.h"

namespace skein {

template <>
inline constexpr auto kChoiceNames<KvReading> = std::to_array<ChoiceName<KvReading>>(
    {{"each", KvReading::kEachRow}, {"cached", KvReading::kCached}, {"once", KvReading::kOnce}});

namespace {

struct ReplayCommand {
  ReplayOptions replay;  // without the scheduler, which the next member describes
  SchedulingOptions scheduling;
  Candidates candidates = Candidates::kPrefix;
  std::string device;
  std::string model;
  std::string weight_type;
  std::string workload;
  std::string kv_cache_memory;
  std::string kv_offload_memory;
  std::string json;
  std::string steps;
  std::vector<std::string> goodput;
  std::optional<int32_t> max_num_batched_tokens;  // unset: UsualBatchedTokens
  int64_t max_requests = 0;
  int64_t kv_bytes_per_token = 0;  // of the model
  bool no_prefix_caching = false;
};

struct CalibrateCommand {
  CalibrationOptions calibration;
  std::string out;
  double request_us = 0;
};

// The blocks of the model's keys and values in this much memory.
Result<int32_t> BlocksIn(const std::string& option, const std::string& memory,
                         const SimModelShape& shape) {
  SKEIN_ASSIGN_OR_RETURN(const int64_t bytes, ParseByteSize(option, memory));
  const int64_t blocks = bytes / (shape.kv_bytes_per_token() * kBlockTokens);
  if (blocks >= 1 && blocks <= (1 << 30)) return static_cast<int32_t>(blocks);
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{} of {} is {} blocks, must be in [1, 2^30]", option, memory, blocks),
                option);
}

Status SetKvBlocks(const ReplayCommand& command, const DeviceDescription& device,
                   const SimModelShape& shape, SchedulerConfig* config) {
  if (!command.kv_cache_memory.empty()) {
    SKEIN_ASSIGN_OR_RETURN(config->num_kv_blocks,
                           BlocksIn("kv-cache-memory", command.kv_cache_memory, shape));
  }
  if (command.kv_offload_memory.empty()) return Status::Ok();
  if (command.no_prefix_caching) {
    return {StatusCode::kInvalidArgument, "kv-offload-memory needs prefix caching",
            "kv-offload-memory"};
  }
  if (device.host_gbps == 0) {
    return {StatusCode::kInvalidArgument,
            fmt::format("kv-offload-memory needs a device with a link to the host (host_gbps); {} "
                        "has none",
                        device.name),
            "kv-offload-memory"};
  }
  SKEIN_ASSIGN_OR_RETURN(config->num_host_kv_blocks,
                         BlocksIn("kv-offload-memory", command.kv_offload_memory, shape));
  return Status::Ok();
}

// The time of all steps of all replicas, and means over the decode steps: rows, and bytes of keys
// and values of all layers that they read.
nlohmann::ordered_json DecodingToJson(const ReplayCommand& command, const ReplayOutcome& outcome) {
  const KvReadTotals& reads = outcome.kv_reads;
  const auto per_step = [&](int64_t sum) {
    return static_cast<double>(sum) / static_cast<double>(std::max<int64_t>(reads.steps, 1));
  };
  const auto token_bytes = static_cast<double>(command.kv_bytes_per_token);
  nlohmann::ordered_json json;
  json["num_preemptions"] = outcome.totals.num_preemptions;
  json["step_s"] = static_cast<double>(outcome.totals.step_us) / 1e6;
  json["decode_steps"] = reads.steps;
  json["mean_decode_batch"] = per_step(reads.rows);
  json["kv_bytes_asked_per_step"] = per_step(reads.asked) * token_bytes;
  json["kv_bytes_unique_per_step"] = per_step(reads.unique) * token_bytes;
  json["prefix_groups_joined"] = outcome.totals.prefix_groups_joined;
  json["prefix_groups_overdue"] = outcome.totals.prefix_groups_overdue;
  json["prefix_groups_stops"] = outcome.totals.prefix_groups_stops;
  return json;
}

nlohmann::ordered_json ToJson(const ReplayCommand& command, const ReplayOutcome& outcome,
                              const LoadReport& report, double wall_s) {
  nlohmann::ordered_json json;
  json["date"] = BenchDate();
  json["backend"] = "sim";
  json["device"] = command.device;
  json["model_id"] = command.model;
  json["workload"] = command.workload;
  json["preset"] = command.scheduling.preset;
  json["num_prompts"] = outcome.records.size();
  json["num_not_sent"] = 0;
  json["speed"] = command.replay.speed;
  json["max_concurrency"] = nullptr;
  if (command.replay.concurrency > 0) json["max_concurrency"] = command.replay.concurrency;
  json["num_kv_blocks"] = outcome.num_kv_blocks;
  json["wall_s"] = wall_s;
  json.update(LoadReportToJson(report));
  json.update(DecodingToJson(command, outcome));
  return json;
}

// Returns the exit status: 0 if at least one request was answered.
Result<int> RunReplay(ReplayCommand command) {
  const auto begin = std::chrono::steady_clock::now();
  ReplayOptions replay = command.replay;
  SchedulerConfig* config = &replay.engine.scheduler;
  SKEIN_ASSIGN_OR_RETURN(*config, SchedulerConfigOf(command.scheduling));
  config->max_num_batched_tokens = command.max_num_batched_tokens.value_or(
      UsualBatchedTokens(*config, config->max_num_batched_tokens));
  if (command.candidates != Candidates::kPrefix &&
      config->policies.decode_set != DecodeSet::kPrefixHomogeneous) {
    return Status(StatusCode::kInvalidArgument, "candidates needs decode_set prefix-homogeneous",
                  "candidates");
  }
  replay.policies = PoliciesWith(command.candidates);
  const std::string& stop_table = command.scheduling.stop_table;
  if (!stop_table.empty() && replay.replicas > 1) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("replicas is {}, must be 1 with stop-table: each replica would begin "
                              "with the table and write its own over those of the others",
                              replay.replicas),
                  "replicas");
  }
  SKEIN_ASSIGN_OR_RETURN(const GoodputTargets goodput, ParseGoodput(command.goodput));
  SKEIN_ASSIGN_OR_RETURN(const DeviceDescription device, LoadDevice(command.device));
  SKEIN_ASSIGN_OR_RETURN(const SimModelShape shape, LoadShape(command.model, command.weight_type));
  SKEIN_ASSIGN_OR_RETURN(const auto workload, LoadWorkload(command.workload, command.max_requests));
  command.kv_bytes_per_token = shape.kv_bytes_per_token();
  if (replay.tokens.vocab == 0) replay.tokens.vocab = shape.vocab_size;
  if (replay.tokens.min_id >= replay.tokens.vocab || replay.tokens.vocab > shape.vocab_size) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("vocab is {}, must be above min-id, {}, and at most the model's, {}",
                              replay.tokens.vocab, replay.tokens.min_id, shape.vocab_size),
                  "vocab");
  }
  if (config->max_model_len == 0) config->max_model_len = shape.max_position;
  config->prefix_caching = !command.no_prefix_caching;
  std::optional<StepLog> step_log;
  if (!command.steps.empty()) {
    if (replay.replicas > 1) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("replicas is {}, must be 1 with steps", replay.replicas),
                    "replicas");
    }
    replay.observers.push_back(&step_log.emplace(command.steps));
    if (!step_log->good()) {
      return Status(StatusCode::kInvalidArgument, "steps: " + command.steps + " cannot be written",
                    "steps");
    }
  }
  std::optional<StopTableWriter> table_writer;
  if (!stop_table.empty()) {
    SKEIN_RETURN_IF_ERROR(ReadStopTable(stop_table, config));
    replay.observers.push_back(&table_writer.emplace(stop_table));
  }
  SKEIN_RETURN_IF_ERROR(SetKvBlocks(command, device, shape, config));
  SKEIN_ASSIGN_OR_RETURN(const ReplayOutcome outcome, Replay(device, shape, workload, replay));
  const LoadReport report = MakeLoadReport(outcome.records, outcome.duration_us, goodput);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  std::fputs(LoadReportToTable(report, "Simulation").c_str(), stdout);
  fmt::print("{} requests simulated in {:.2f} s\n", workload.size(), wall.count());
  SKEIN_RETURN_IF_ERROR(
      WriteBenchJson(command.json, ToJson(command, outcome, report, wall.count())));
  return report.total.completed > 0 ? 0 : 1;
}

Status RunCalibrate(const CalibrateCommand& command) {
  SKEIN_ASSIGN_OR_RETURN(Calibration calibration, CalibrateDevice(command.calibration));
  calibration.device.request_us = command.request_us;
  fmt::print("{:>6}{:>8}{:>8}{:>14}{:>14}{:>9}\n", "rows", "new", "cached", "measured ms",
             "described ms", "error");
  for (const CalibrationPoint& point : calibration.points) {
    fmt::print("{:>6}{:>8}{:>8}{:>14.2f}{:>14.2f}{:>8.1f}%\n", point.rows, point.new_tokens,
               point.cached_tokens, point.measured_us / 1e3, point.predicted_us / 1e3,
               100 * (point.predicted_us / point.measured_us - 1));
  }
  std::ofstream file(command.out);
  file << DeviceToJson(calibration.device);
  file.flush();
  if (file) return Status::Ok();
  return {StatusCode::kInvalidArgument, "out: " + command.out + " cannot be written", "out"};
}

void AddCalibrate(CLI::App* sim, int* exit_status) {
  auto command = std::make_shared<CalibrateCommand>();
  CalibrationOptions* o = &command->calibration;
  CLI::App* app = sim->add_subcommand("calibrate", "Describe this processor by a model's times");
  AddBenchModelOptions(app, &o->model);
  app->add_option("--out", command->out, "The description")->required();
  app->add_option("--max-tokens", o->max_tokens, "Tokens of a step")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--context", o->context, "Tokens behind which attention is measured")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--rounds", o->rounds,
                  "Measurements of each step, in turns; their mean counts, in which of three or "
                  "more the largest is taken for the second largest")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app->add_option("--request-us", command->request_us,
                  "Time of a request beside its steps, as measured")
      ->check(CLI::Range(0.0, 1e9));
  app->callback([command, exit_status] {
    const Status status = RunCalibrate(*command);
    if (status.ok()) return;
    std::fprintf(stderr, "skein sim calibrate: %s\n", status.message().c_str());
    *exit_status = 1;
  });
}

// Adds the options of the scheduler and the engine's limits.
void AddEngineOptions(CLI::App* app, ReplayCommand* c) {
  SchedulerConfig* config = &c->scheduling.config;
  AddPresetOption(app, "--preset,--scheduling", &c->scheduling);
  AddChoiceOptions(app, &c->scheduling);
  {
    const HelpGroup yardsticks(app, "Yardsticks");
    AddChoice(app, "--candidates", &c->candidates,
              "How prefix-homogeneous compares prefixes: prefix (as the server does), or for "
              "comparisons radix (token by token) or user (an oracle: requests of one user share "
              "a prefix)");
  }
  const HelpGroup group(app, "Limits");
  app->add_option("--max-model-len", config->max_model_len, "0: the model's own limit")
      ->check(CLI::Range(0, 1 << 30));
  app->add_option("--max-num-seqs", config->max_num_seqs, "Continuations computed at once")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app->add_option("--max-num-batched-tokens", c->max_num_batched_tokens,
                  "Tokens of one step; default: 2048, or as many as --max-num-seqs and the chunk "
                  "of the preset or of --chunk-tokens need")
      ->check(CLI::Range(1, 1 << 24));
  app->add_option("--kv-cache-memory", c->kv_cache_memory,
                  "Memory for keys and values; default: what the device has left");
  app->add_option("--kv-offload-memory", c->kv_offload_memory,
                  "Memory of the host for blocks that the device evicts");
  app->add_flag("--no-enable-prefix-caching", c->no_prefix_caching, "Compute every prompt whole");
}

void AddDeviceOptions(CLI::App* app, ReplayCommand* c) {
  const HelpGroup group(app, "Device");
  app->add_option("--device", c->device, "A description, such as devices/h100-pcie.json");
  app->add_option("--model", c->model, "A directory with a config.json");
  app->add_option("--weight-type", c->weight_type, "bf16, fp8 or f32; default: as the config says")
      ->check(CLI::IsMember({"bf16", "fp8", "f32"}));
  app->add_option("--memory-utilization", c->replay.memory_utilization,
                  "Share of the device's memory that may be used")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  AddChoice(app, "--kv-reads", &c->replay.kv_reading,
            "How decode rows read what they share: each for itself (each), so, but from the "
            "device's cache (cached, an upper bound), or once for all (once)");
  app->add_option("--round-us", c->replay.round_us,
                  "Microseconds of scheduling before each step, as `skein bench sched` measures")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->capture_default_str();
  app->add_option("--tp", c->replay.parallelism.tensor, "Devices that share each operator")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app->add_option("--pp", c->replay.parallelism.pipeline, "Stages that the layers are divided into")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app->add_option("--replicas", c->replay.replicas, "Engines; a user's requests go to one")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
}

void AddWorkloadOptions(CLI::App* app, ReplayCommand* c) {
  const HelpGroup group(app, "Workload and results");
  app->add_option("--workload", c->workload, "One JSON request per line");
  app->add_option("--max-requests", c->max_requests, "Only the first of the workload; 0: all")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  app->add_option("--speed", c->replay.speed, "Arrival times are divided by this")
      ->check(CLI::Range(1e-6, 1e6))
      ->capture_default_str();
  app->add_option("--concurrency", c->replay.concurrency,
                  "Closed loop: so many requests at a time. Without it, arrival times count")
      ->check(CLI::Range(1, 1 << 24));
  app->add_option("--vocab", c->replay.tokens.vocab,
                  "Compact prompts: ids are below this; 0: the model's")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  app->add_option("--min-id", c->replay.tokens.min_id, "Compact prompts: and not below this")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  app->add_option("--goodput", c->goodput, "Deadlines in ms: ttft:250 tpot:50 e2el:1000");
  app->add_option("--json", c->json, "Write the results to this file");
  app->add_option(
      "--steps", c->steps,
      "Write a line for each step to this file: its end in seconds, its decodes and its "
      "tokens of prompts; needs --replicas 1");
}

}  // namespace

void AddSimCommand(CLI::App* app, int* exit_status) {
  auto command = std::make_shared<ReplayCommand>();
  ReplayCommand* c = command.get();
  c->replay.tokens.vocab = 0;
  CLI::App* sim =
      app->add_subcommand("sim", "Run a workload through the real scheduler on a simulated device");
  AddDeviceOptions(sim, c);
  AddWorkloadOptions(sim, c);
  AddEngineOptions(sim, c);
  AddCalibrate(sim, exit_status);
  ShowFirst(sim, {"--device", "--model", "--workload", "--preset", "--speed", "--concurrency",
                  "--max-num-batched-tokens", "--kv-cache-memory", "--goodput", "--json"});
  sim->callback([sim, command, exit_status] {
    if (!sim->get_subcommands().empty()) return;
    for (const char* name : {"--device", "--model", "--workload"}) {
      if (sim->count(name) == 0) throw CLI::RequiredError(name);
    }
    const Result<int> result = RunReplay(*command);
    if (result.ok()) {
      *exit_status = result.value();
      return;
    }
    std::fprintf(stderr, "skein sim: %s\n", result.status().message().c_str());
    *exit_status = 1;
  });
}

}  // namespace skein
