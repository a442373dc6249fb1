#include "apps/sim/sim_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "apps/read_file.h"
#include "apps/sim/sim_calibrate.h"
#include "base/json_numbers.h"
#include "engine/cost_profile.h"
#include "engine/decode_profile.h"
#include "model/config/config.h"
#include "runtime/memory_plan.h"
#include "sim/sim_executor.h"
#include "sim/simulation.h"

namespace skein {
namespace {

// The bytes of 16-bit activations that a step of `tokens` tokens holds at the same time. Plain
// execution holds for all tokens: the residual, the normalised input, queries and attention's
// output, keys and values, and the MLP's two projections and their product. Hybrid execution holds
// the residual and the queries for all tokens, and the rest for one chunk. With `own_kv`, one
// layer's keys and values of all tokens are added.
int64_t StepBytes(const SimModelShape& shape, Execution execution, int64_t tokens, bool own_kv) {
  const int64_t wide =
      int64_t{shape.hidden_size} + shape.q_width + shape.kv_width + shape.mlp_width();
  const bool hybrid = execution == Execution::kHybrid;
  const int64_t wide_tokens = hybrid ? std::min<int64_t>(tokens, kHybridChunkTokens) : tokens;
  const int64_t narrow = int64_t{shape.hidden_size} + shape.q_width + (own_kv ? shape.kv_width : 0);
  return 2 * (tokens * narrow + wide_tokens * wide);
}

// The bytes of activations of the largest possible steps, times the number of steps that keep their
// state at the same time. If not all keys and values are retained, a step holds its own.
int64_t ActivationBytes(const SimModelShape& shape, const SchedulerConfig& config) {
  const auto [execution, retention] =
      std::pair(config.policies.execution, config.policies.retention);
  const int64_t tokens =
      StepBoundsOf(retention, config.max_model_len, config.max_num_batched_tokens).max_tokens;
  const StepStates states = StatesOf(NumSteps(config), config.max_num_seqs);
  const int64_t decodes = std::min<int64_t>(tokens, states.num_decodes);
  return states.num_steps * StepBytes(shape, execution, tokens, retention != Retention::kAll) +
         StepBytes(shape, execution, decodes, /*own_kv=*/false);
}

Result<int32_t> NumKvBlocks(const StepCost& cost, const SimModelShape& shape,
                            const ReplayOptions& options) {
  const SchedulerConfig& config = options.engine.scheduler;
  if (config.num_kv_blocks > 0) return config.num_kv_blocks;
  const int64_t activations = ActivationBytes(shape, config) / options.parallelism.tensor;
  const int64_t bytes = cost.KvBytes(options.memory_utilization, activations);
  const int64_t blocks = bytes / (shape.kv_bytes_per_token() * kBlockTokens);
  if (bytes < 0 || blocks < 1) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("device: weights of {} bytes and activations of {} leave no memory "
                              "for KV",
                              shape.weight_bytes(), activations),
                  "device");
  }
  return static_cast<int32_t>(std::min<int64_t>(blocks, 1 << 24));
}

// Divides the requests among the replicas: requests of one user go to the same replica, and those
// without a user go to the replicas in turn.
std::vector<std::vector<size_t>> Divide(const std::vector<WorkloadRequest>& workload,
                                        int32_t replicas) {
  std::vector<size_t> order(workload.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return workload[i].arrival_us; });
  std::vector<std::vector<size_t>> parts(replicas);
  std::unordered_map<std::string_view, size_t> users;
  size_t next = 0;
  for (const size_t i : order) {
    const std::string& user = workload[i].user;
    const size_t place = user.empty() ? next++ : users.emplace(user, users.size()).first->second;
    parts[place % parts.size()].push_back(i);
  }
  return parts;
}

// The simulation of one replica.
class ReplicaRun {
 public:
  // Sends the requests at the indices `order` of the workload to an engine with the options'
  // configuration, and writes their records.
  ReplicaRun(const std::vector<WorkloadRequest>& workload, std::vector<size_t> order,
             const ReplayOptions& options, TimeUs request_us, std::vector<LoadRecord>* records)
      : workload_(workload),
        order_(std::move(order)),
        options_(options),
        request_us_(request_us),
        records_(*records),
        last_us_(order_.size()) {}

  SimOutcome Run(const StepCost& cost, const SchedulerConfig& config) {
    SimExecutor executor(cost, &clock_, options_.tokens.vocab);
    executor.set_round_us(options_.round_us);
    Simulation simulation(config, &executor, &clock_, options_.observers, options_.policies);
    const int32_t share = (options_.concurrency + options_.replicas - 1) / options_.replicas;
    const SimOutcome outcome = simulation.Run(
        [this] { return Next(); },
        {.on_output = [this](int64_t number,
                             const RequestOutput& output) { NoteOutput(number, output); },
         .on_refused =
             [this](int64_t number, const Status& status) {
               records_[order_[number]].error = status.message();
             }},
        share);
    kv_reads_ = executor.kv_reads();
    return outcome;
  }
  const KvReadTotals& kv_reads() const { return kv_reads_; }

 private:
  std::optional<SimArrival> Next() {
    if (next_ == order_.size()) return std::nullopt;
    const size_t index = order_[next_++];
    const WorkloadRequest& request = workload_[index];
    SimArrival arrival;
    arrival.arrival_us =
        std::llround(static_cast<double>(request.arrival_us) / options_.speed) + request_us_;
    arrival.request.prompt = request.TokenIds(options_.tokens);
    arrival.request.generate().max_tokens = request.max_tokens;
    arrival.request.slo_ttft_us = request.slo_ttft_us;
    arrival.request.slo_tpot_us = request.slo_tpot_us;
    arrival.request.priority = request.priority;
    arrival.request.user = request.user;
    LoadRecord& record = records_[index];
    record.request_class = request.request_class;
    record.slo_ttft_us = request.slo_ttft_us;
    record.slo_tpot_us = request.slo_tpot_us;
    record.prompt_tokens = std::ssize(arrival.request.prompt);
    return arrival;
  }

  void NoteOutput(int64_t number, const RequestOutput& output) {
    LoadRecord& record = records_[order_[number]];
    const TimeUs now_us = clock_.NowUs();
    const TimeUs sent_us = output.times.arrival_us - request_us_;
    if (!output.tokens.empty()) {
      if (record.output_tokens == 0) {
        record.ttft_us = now_us - sent_us;
      } else {
        record.itl_us.push_back(now_us - last_us_[number]);
      }
      record.output_tokens += std::ssize(output.tokens);
      last_us_[number] = now_us;
    }
    record.cached_tokens = std::max<int64_t>(record.cached_tokens, output.cached_tokens);
    if (!output.finish) return;
    record.ok = *output.finish != FinishReason::kError;
    record.error = output.status.message();
    record.e2el_us = now_us - sent_us;
  }

  const std::vector<WorkloadRequest>& workload_;
  const std::vector<size_t> order_;  // indices in the workload, by arrival
  const ReplayOptions& options_;
  const TimeUs request_us_;
  std::vector<LoadRecord>& records_;
  std::vector<TimeUs> last_us_;  // the time of a request's last piece
  size_t next_ = 0;              // index in order_
  KvReadTotals kv_reads_;
  VirtualClock clock_;
};

// The profile of the device that a server would measure at its start.
CostFit Profile(const StepCost& cost, const SchedulerConfig& config, int32_t vocab_size) {
  VirtualClock clock;
  SimExecutor executor(cost, &clock, vocab_size);
  StepProfiler profiler(&executor, &clock, vocab_size, config.num_kv_blocks, GenerateSpec{},
                        config.policies.retention);
  CostProfileLimits limits = ProfileLimitsOf(config);
  limits.time_us = 600'000'000;
  return FitCosts(ProfileCosts(profiler, clock, limits));
}

DecodeFit ProfileDecodesOf(const StepCost& cost, const SchedulerConfig& config,
                           int32_t vocab_size) {
  VirtualClock clock;
  SimExecutor executor(cost, &clock, vocab_size);
  StepProfiler profiler(&executor, &clock, vocab_size, config.num_kv_blocks, GenerateSpec{},
                        config.policies.retention);
  DecodeProfileLimits limits = DecodeProfileLimitsOf(config);
  limits.time_us = 600'000'000;
  return FitDecodes(ProfileSharedDecodes(profiler, clock, limits));
}

}  // namespace

void ReplayTotals::Add(const EngineStats& stats) {
  step_us += stats.prefill_us + stats.decode_us + stats.mixed_us;
  num_preemptions += stats.num_preemptions;
  prefix_groups_joined += stats.prefix_groups_joined;
  prefix_groups_overdue += stats.prefix_groups_overdue;
  prefix_groups_stops += stats.prefix_groups_stops;
}

Result<SimModelShape> LoadShape(const std::string& model_dir, const std::string& weight_type) {
  SKEIN_ASSIGN_OR_RETURN(const std::string text, ReadFile(model_dir + "/config.json"));
  auto json = nlohmann::json::parse(WithReadableNumbers(text), nullptr, /*allow_exceptions=*/false);
  std::string type = weight_type.empty() ? "bf16" : weight_type;
  if (json.is_object() && json.contains("quantization_config")) {
    const auto& quantization = json["quantization_config"];
    const auto& name = quantization.is_object() && quantization.contains("quant_method")
                           ? quantization["quant_method"]
                           : nlohmann::json();
    const std::string method = name.is_string() ? name.get<std::string>() : name.dump();
    if (method != "fp8") {
      return Status(StatusCode::kUnsupported,
                    fmt::format("{}: quant_method '{}' of quantization_config; the simulator "
                                "knows fp8",
                                model_dir, method),
                    "model");
    }
    if (weight_type.empty()) type = "fp8";
    json.erase("quantization_config");
  }
  SKEIN_ASSIGN_OR_RETURN(const ModelConfig config, ParseModelConfig(json.dump()));
  return ShapeOf(config, type);
}

Result<ReplayOutcome> Replay(const DeviceDescription& device, const SimModelShape& shape,
                             const std::vector<WorkloadRequest>& workload,
                             const ReplayOptions& options) {
  for (const WorkloadRequest& request : workload) {
    if (!request.has_text()) continue;
    return Status(StatusCode::kUnsupported,
                  "workload: prompts must be segments or prompt_token_ids; text has no length "
                  "without a tokenizer",
                  "workload");
  }
  const bool hybrid = options.engine.scheduler.policies.execution == Execution::kHybrid;
  const int32_t chunk_tokens = hybrid ? kHybridChunkTokens : 0;
  SKEIN_ASSIGN_OR_RETURN(const StepCost cost, StepCost::Make(device, shape, options.parallelism,
                                                             options.kv_reading, chunk_tokens));
  ReplayOutcome outcome;
  SKEIN_ASSIGN_OR_RETURN(outcome.num_kv_blocks, NumKvBlocks(cost, shape, options));
  EngineConfig engine = options.engine;
  engine.vocab_size = shape.vocab_size;
  engine.scheduler.num_kv_blocks = outcome.num_kv_blocks;
  SKEIN_ASSIGN_OR_RETURN(SchedulerConfig config, MakeSchedulerConfig(engine));
  engine.scheduler.cost = Profile(cost, config, engine.vocab_size);
  if (NeedsDecodeCosts(config)) {
    engine.scheduler.decode_cost = ProfileDecodesOf(cost, config, engine.vocab_size);
  }
  SKEIN_ASSIGN_OR_RETURN(config, MakeSchedulerConfig(engine));
  outcome.records.resize(workload.size());
  for (std::vector<size_t>& part : Divide(workload, options.replicas)) {
    ReplicaRun replica(workload, std::move(part), options, std::llround(device.request_us),
                       &outcome.records);
    const SimOutcome run = replica.Run(cost, config);
    outcome.totals.Add(run.stats);
    outcome.kv_reads.Add(replica.kv_reads());
    outcome.duration_us = std::max(outcome.duration_us, run.end_us);
  }
  return outcome;
}

}  // namespace skein
