#include "apps/sim/sim_calibrate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/clock.h"
#include "bench/kernels/limits.h"
#include "bench/serving/load_report.h"
#include "engine/cost_profile.h"
#include "sim/step_cost.h"

namespace skein {
namespace {

constexpr int kLimitRuns = 9;
// Attention's time is computed from a step's time only if it makes at least this share of a
// difference.
constexpr double kMinAttentionShare = 0.02;
// The number of rows of the step that measures the cost of a row.
constexpr int32_t kManyRows = 8;
constexpr int32_t kManyRowTokens = 16;

double PairsOf(double new_tokens, double cached) {
  return new_tokens * (cached + (new_tokens + 1) / 2);
}

// Mean times of steps, by the number of new tokens. Means are used since they are what a load pays:
// if the host takes time away now and then, they are above the medians.
struct Times {
  std::vector<int32_t> tokens;
  std::vector<double> alone_us;
  std::vector<double> behind_us;  // [tokens]: with the context before them
  double many_rows_us = 0;
  double one_row_us = 0;  // one row with as many tokens as the many rows have together
};

Times Measure(StepProfiler& profiler, const CalibrationOptions& options) {
  Times times;
  for (int32_t n = 1; n <= options.max_tokens; n *= n < 16 ? 4 : 2) times.tokens.push_back(n);
  const size_t count = times.tokens.size();
  std::vector<std::vector<double>> alone(count), behind(count);
  std::vector<double> many, one;
  for (int round = 0; round <= options.rounds; ++round) {
    for (size_t i = 0; i < count; ++i) {
      const ProfileRow rows[] = {{times.tokens[i], 0}, {times.tokens[i], options.context}};
      const double alone_us = profiler.MeasureUs({&rows[0], 1});
      const double behind_us = profiler.MeasureUs({&rows[1], 1});
      if (round == 0) continue;  // the first round warms up
      alone[i].push_back(alone_us);
      behind[i].push_back(behind_us);
    }
    const std::vector<ProfileRow> rows(kManyRows, {kManyRowTokens, 0});
    const ProfileRow row = {kManyRows * kManyRowTokens, 0};
    const double many_us = profiler.MeasureUs(rows);
    const double one_us = profiler.MeasureUs({&row, 1});
    if (round == 0) continue;
    many.push_back(many_us);
    one.push_back(one_us);
  }
  for (size_t i = 0; i < count; ++i) {
    times.alone_us.push_back(MeanButOutlier(alone[i]));
    times.behind_us.push_back(MeanButOutlier(behind[i]));
  }
  times.many_rows_us = MeanButOutlier(std::move(many));
  times.one_row_us = MeanButOutlier(std::move(one));
  return times;
}

void FitAttention(const Times& times, const SimModelShape& shape, const CalibrationOptions& options,
                  double peak, DeviceDescription* device) {
  for (size_t i = 0; i < times.tokens.size(); ++i) {
    const double difference_us = times.behind_us[i] - times.alone_us[i];
    if (difference_us < kMinAttentionShare * times.alone_us[i]) continue;
    const double pairs = static_cast<double>(times.tokens[i]) * options.context;
    const double flops = 4 * pairs * shape.q_width * shape.num_layers;
    // The row of one token also stands for a decode row, which counts as the query heads of a KV
    // head. Fewer rows than in the table's first entry count as these.
    const double rows = std::max<double>(times.tokens[i], shape.queries_per_kv_head());
    DeviceDescription::Table& table = device->attention_efficiency;
    if (!table.empty() && rows <= table.back().first) continue;
    table.emplace_back(rows, flops / (peak * difference_us));
  }
  // No difference could be measured, so attention is treated as free.
  if (device->attention_efficiency.empty()) device->attention_efficiency = {{1, 1}};
}

void FitProducts(const Times& times, const SimModelShape& shape, double peak,
                 DeviceDescription* device) {
  const auto parameters = static_cast<double>(shape.num_layer_parameters());
  const double output = static_cast<double>(shape.vocab_size) * shape.hidden_size;
  // The time of the output matrix for one row, estimated as if the matrix were one more layer.
  double output_us = 0;
  for (size_t i = 0; i < times.tokens.size(); ++i) {
    const double n = times.tokens[i];
    const double attention_us = 4 * PairsOf(n, 0) * shape.q_width * shape.num_layers /
                                (peak * EfficiencyAt(device->attention_efficiency, n));
    const double products_us = std::max(times.alone_us[i] - attention_us, 0.1 * times.alone_us[i]);
    if (i == 0) output_us = products_us * output / (output + parameters);
    const double layers_us = std::max(products_us - output_us, 0.1 * products_us);
    device->matmul_efficiency.emplace_back(n, 2 * n * parameters / (peak * layers_us));
  }
  // Weights in a cache are read faster than memory could deliver them.
  const double bytes = WeightTypeBytes(shape.weight_type) * parameters + 2 * output;
  device->bandwidth_gbps = std::max(device->bandwidth_gbps, bytes / times.alone_us[0] / 1e3);
}

// The time of a step, predicted from the description.
double Predict(const StepCost& cost, int32_t num_rows, const ProfileRow& row) {
  const std::vector<TokenId> tokens(row.new_tokens);
  const DrawSpec draw;
  OneShotPlan plan;
  for (int32_t i = 0; i < num_rows; ++i) {
    plan.rows.push_back(
        {.begin = row.cached_tokens, .tokens = tokens, .draws = std::span(&draw, 1)});
  }
  return cost.StepUs(plan);
}

Status AddPoints(const Times& times, const SimModelShape& shape, const CalibrationOptions& options,
                 Calibration* calibration) {
  const auto predict = [&](int32_t rows, const ProfileRow& row) -> Result<double> {
    SKEIN_ASSIGN_OR_RETURN(const StepCost cost, StepCost::Make(calibration->device, shape, {}));
    return Predict(cost, rows, row);
  };
  const ProfileRow of_many = {kManyRowTokens, 0};
  SKEIN_ASSIGN_OR_RETURN(const double many_us, predict(kManyRows, of_many));
  SKEIN_ASSIGN_OR_RETURN(const double one_us, predict(1, {kManyRows * kManyRowTokens, 0}));
  const double more_us = (times.many_rows_us - times.one_row_us) - (many_us - one_us);
  calibration->device.row_us = std::max(0.0, more_us / (kManyRows - 1));
  const auto add = [&](int32_t rows, const ProfileRow& row, double measured_us) -> Status {
    SKEIN_ASSIGN_OR_RETURN(const double predicted_us, predict(rows, row));
    calibration->points.push_back(
        {rows, row.new_tokens, row.cached_tokens, measured_us, predicted_us});
    return Status::Ok();
  };
  for (size_t i = 0; i < times.tokens.size(); ++i) {
    SKEIN_RETURN_IF_ERROR(add(1, {times.tokens[i], 0}, times.alone_us[i]));
    SKEIN_RETURN_IF_ERROR(add(1, {times.tokens[i], options.context}, times.behind_us[i]));
  }
  return add(kManyRows, of_many, times.many_rows_us);
}

}  // namespace

Result<SimModelShape> ShapeOf(const ModelConfig& config, const std::string& weight_type) {
  if (config.is_encoder()) {
    return Status(StatusCode::kUnsupported, "model: the simulator knows decoders only", "model");
  }
  SimModelShape shape;
  shape.num_layers = config.num_layers;
  shape.hidden_size = config.hidden_size;
  shape.intermediate_size = config.intermediate_size;
  shape.vocab_size = config.vocab_size;
  shape.head_dim = config.head_dim;
  shape.q_width = config.num_heads * config.head_dim;
  shape.kv_width = 2 * config.num_kv_heads * config.head_dim;
  shape.tie_embeddings = config.tie_embeddings;
  shape.max_position = config.max_position;
  shape.num_expert_layers = static_cast<int32_t>(std::ranges::count(config.has_experts, true));
  shape.num_experts = config.num_experts;
  shape.experts_per_token = config.experts_per_token;
  shape.expert_size = config.expert_size;
  shape.shared_expert_size = config.decoder.shared_expert_size;
  shape.weight_type = weight_type;
  return shape;
}

Result<Calibration> CalibrateDevice(const CalibrationOptions& wanted) {
  SKEIN_ASSIGN_OR_RETURN(CpuRuntimeOptions runtime_options, RuntimeOptionsOf(wanted.model));
  SKEIN_ASSIGN_OR_RETURN(const ModelConfig config, LoadModelConfig(runtime_options.model_dir));
  CalibrationOptions options = wanted;  // limited to the model's positions
  options.context = std::min(options.context, config.max_position / 2);
  options.max_tokens = std::min(options.max_tokens, config.max_position / 2);
  const int32_t longest =
      std::max(options.context + options.max_tokens, kManyRows * kManyRowTokens);
  runtime_options.max_model_len = longest;
  runtime_options.max_num_seqs = kManyRows;
  runtime_options.max_num_batched_tokens = std::max(options.max_tokens, kManyRows * kManyRowTokens);
  runtime_options.num_kv_blocks = BlocksFor(longest) + kManyRows;
  SKEIN_ASSIGN_OR_RETURN(const auto runtime, CpuRuntime::Load(runtime_options));
  const std::string weight_type = runtime->dtype() == DType::kF32 ? "f32" : "bf16";
  SKEIN_ASSIGN_OR_RETURN(const SimModelShape shape, ShapeOf(runtime->config(), weight_type));
  ThreadTeam team(runtime->num_threads());
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<LimitMeter> meter, LimitMeter::Make(&team));
  const MachineLimits limits = MeasureLimits(*meter, runtime->isa(), kLimitRuns);

  const MonotonicClock clock;
  StepProfiler profiler(&runtime->executor(), &clock, shape.vocab_size, runtime->num_kv_blocks(),
                        GenerateSpec{});
  const Times times = Measure(profiler, options);
  Calibration calibration;
  DeviceDescription& device = calibration.device;
  device.name =
      fmt::format("this CPU, {} threads, {}", runtime->num_threads(), NameOf(runtime->isa()));
  device.source = "skein sim calibrate " + options.model.model;
  device.tflops[weight_type] = limits.compute_tflops(runtime->isa(), runtime->matrix_dtype());
  device.bandwidth_gbps = limits.read_gbps;
  device.memory_bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  const double peak = device.tflops[weight_type] * 1e6;
  FitAttention(times, shape, options, peak, &device);
  FitProducts(times, shape, peak, &device);
  SKEIN_RETURN_IF_ERROR(AddPoints(times, shape, options, &calibration));
  return calibration;
}

}  // namespace skein
