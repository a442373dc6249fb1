#include "sim/step_cost.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace skein {
namespace {

constexpr double kActivationBytes = 2;  // bf16

Status Refuse(const char* field, std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message), field};
}

}  // namespace

StepCost::StepCost(const DeviceDescription& device, const SimModelShape& shape,
                   const Parallelism& parallelism, KvReading reading, int32_t chunk_tokens)
    : device_(device),
      shape_(shape),
      parallelism_(parallelism),
      reading_(reading),
      chunk_tokens_(chunk_tokens),
      peak_flops_per_us_(device.tflops.at(shape.weight_type) * 1e6),
      bytes_per_us_(device.bandwidth_gbps * device.bandwidth_efficiency * 1e3) {}

Result<StepCost> StepCost::Make(const DeviceDescription& device, const SimModelShape& shape,
                                const Parallelism& parallelism, KvReading reading,
                                int32_t chunk_tokens) {
  SKEIN_CHECK(chunk_tokens >= 0);
  if (!device.tflops.contains(shape.weight_type)) {
    return Refuse("weight-type", fmt::format("device {} has no peak for weights in {}", device.name,
                                             shape.weight_type));
  }
  const int32_t num_heads = shape.q_width / shape.head_dim;
  const int32_t num_kv_heads = shape.kv_width / 2 / shape.head_dim;
  if (parallelism.tensor < 1 || num_heads % parallelism.tensor != 0 ||
      num_kv_heads % parallelism.tensor != 0) {
    return Refuse("tp", fmt::format("tp is {}, must be at least 1 and divide the model's {} heads "
                                    "and {} KV heads",
                                    parallelism.tensor, num_heads, num_kv_heads));
  }
  if (parallelism.pipeline < 1 || parallelism.pipeline > shape.num_layers) {
    return Refuse("pp", fmt::format("pp is {}, must be in [1, {}], the model's layers",
                                    parallelism.pipeline, shape.num_layers));
  }
  if (parallelism.tensor * parallelism.pipeline > 1 && device.link_gbps == 0) {
    return Refuse(parallelism.tensor > 1 ? "tp" : "pp",
                  fmt::format("device {} has no link to others (link_gbps)", device.name));
  }
  return StepCost(device, shape, parallelism, reading, chunk_tokens);
}

int64_t StepCost::KvBytes(double utilization, int64_t reserved_bytes) const {
  const int64_t num_devices = int64_t{parallelism_.tensor} * parallelism_.pipeline;
  const double usable = static_cast<double>(device_.memory_bytes * num_devices) * utilization;
  return static_cast<int64_t>(usable) - shape_.weight_bytes() - reserved_bytes * num_devices;
}

// The time of multiplying `rows` rows of `in` elements by a matrix [in, out] that is divided
// between the devices.
double StepCost::ProductUs(double rows, double in, double out, double bytes_per_weight) const {
  const double devices = parallelism_.tensor;
  const double flops = 2 * rows * in * out / devices;
  const double bytes =
      (in * out * bytes_per_weight + rows * (in + out) * kActivationBytes) / devices;
  const double share = EfficiencyAt(device_.matmul_efficiency, rows);
  return std::max(flops / (peak_flops_per_us_ * share), bytes / bytes_per_us_) + device_.launch_us;
}

// The time of the arithmetic for `pairs` pairs of a query and a key, in one layer, at the
// efficiency of a product of `rows` rows. Scores and values are 16 bit for every weight type.
double StepCost::PairsUs(double pairs, double rows) const {
  const double flops = 4 * pairs * shape_.q_width / parallelism_.tensor;
  const auto bf16 = device_.tflops.find("bf16");
  const double peak = bf16 != device_.tflops.end() ? bf16->second * 1e6 : peak_flops_per_us_;
  return flops / (peak * EfficiencyAt(device_.attention_efficiency, rows));
}

// The KV bytes of one layer that are on one device.
double StepCost::KvBytesOf(double num_tokens) const {
  return num_tokens * 2 * shape_.kv_width / parallelism_.tensor;
}

// The time of a row's attention in one layer.
double StepCost::AttentionUs(const PlanRow& row, double product_rows) const {
  const auto tokens = static_cast<double>(row.tokens.size());
  const double begin = row.begin;
  const double pairs = tokens * (begin + (tokens + 1) / 2);
  return std::max(PairsUs(pairs, product_rows), KvBytesOf(begin + tokens) / bytes_per_us_);
}

double StepCost::DecodeAttentionUs(std::span<const PlanRow> decodes, const KvReads& reads) const {
  const double group = shape_.queries_per_kv_head();
  double sum_us = 0;
  switch (reading_) {
    case KvReading::kEachRow:
      for (const PlanRow& row : decodes) sum_us += AttentionUs(row, group);
      break;
    case KvReading::kCached: {
      const double unique = KvBytesOf(static_cast<double>(reads.unique));
      const double again = KvBytesOf(static_cast<double>(reads.asked)) - unique;
      const double hits = unique > 0 ? std::min(1.0, device_.cache_mb * 1e6 / unique) : 0;
      sum_us = std::max(PairsUs(static_cast<double>(reads.asked), group),
                        (unique + again * (1 - hits)) / bytes_per_us_);
      break;
    }
    case KvReading::kOnce:
      for (const KvReads::Run& run : reads.runs) {
        const auto tokens = static_cast<double>(run.tokens);
        sum_us += std::max(PairsUs(tokens * run.rows, run.rows * group),
                           KvBytesOf(tokens) / bytes_per_us_);
      }
      break;
  }
  return sum_us;
}

double StepCost::ExpertsUs(double num_tokens) const {
  const double experts = shape_.num_experts, per_token = shape_.experts_per_token;
  const double active = experts * (1 - std::pow(1 - per_token / experts, num_tokens));
  const double slots = num_tokens * per_token;
  const double weights = 3.0 * shape_.hidden_size * shape_.expert_size;  // weights of one expert
  const double flops = 2 * slots * weights / parallelism_.tensor;
  const double bytes =
      (active * weights * WeightTypeBytes(shape_.weight_type) +
       slots * (2.0 * shape_.hidden_size + 3.0 * shape_.expert_size) * kActivationBytes) /
      parallelism_.tensor;
  const double share = EfficiencyAt(device_.matmul_efficiency, slots / active);
  return ProductUs(num_tokens, shape_.hidden_size, experts, kActivationBytes) +
         std::max(flops / (peak_flops_per_us_ * share), bytes / bytes_per_us_) +
         2 * device_.launch_us + SharedExpertUs(num_tokens);
}

double StepCost::SharedExpertUs(double num_tokens) const {
  if (shape_.shared_expert_size == 0) return 0;
  const double hidden = shape_.hidden_size, width = shape_.shared_expert_size;
  const double weight_bytes = WeightTypeBytes(shape_.weight_type);
  return ProductUs(num_tokens, hidden, 2 * width, weight_bytes) +
         ProductUs(num_tokens, width, hidden, weight_bytes) +
         ProductUs(num_tokens, hidden, 1, kActivationBytes);
}

double StepCost::MlpUs(double num_tokens) const {
  const double share = shape_.num_expert_layers / static_cast<double>(shape_.num_layers);
  const double hidden = shape_.hidden_size, width = shape_.intermediate_size;
  const double weight_bytes = WeightTypeBytes(shape_.weight_type);
  double total_us = 0;
  if (share < 1) {
    total_us += (1 - share) * (ProductUs(num_tokens, hidden, 2 * width, weight_bytes) +
                               ProductUs(num_tokens, width, hidden, weight_bytes));
  }
  if (share > 0) total_us += share * ExpertsUs(num_tokens);
  return total_us;
}

double StepCost::AllReduceUs(double num_tokens) const {
  const double devices = parallelism_.tensor;
  if (devices == 1) return 0;
  const double bytes =
      2 * (devices - 1) / devices * num_tokens * shape_.hidden_size * kActivationBytes;
  return device_.link_us + bytes / (device_.link_gbps * 1e3);
}

double StepCost::HostCopiesUs(std::span<const HostCopy> copies) const {
  if (copies.empty()) return 0;
  SKEIN_CHECK(device_.host_gbps > 0);
  const double layers = static_cast<double>(shape_.num_layers) / parallelism_.pipeline;
  const double block_us = layers * KvBytesOf(kBlockTokens) / (device_.host_gbps * 1e3);
  return static_cast<double>(copies.size()) * (device_.launch_us + block_us);
}

double StepCost::OperatorsUs(double num_tokens) const {
  const double weight_bytes = WeightTypeBytes(shape_.weight_type);
  const double hidden = shape_.hidden_size;
  return ProductUs(num_tokens, hidden, shape_.q_width + shape_.kv_width, weight_bytes) +
         ProductUs(num_tokens, shape_.q_width, hidden, weight_bytes) + MlpUs(num_tokens) +
         2 * AllReduceUs(num_tokens);
}

double StepCost::ChunkedOperatorsUs(double num_tokens) const {
  const double chunk = chunk_tokens_;
  if (chunk == 0 || num_tokens <= chunk) return OperatorsUs(num_tokens);
  const double num_chunks = std::floor(num_tokens / chunk);
  const double rest = num_tokens - num_chunks * chunk;
  return num_chunks * OperatorsUs(chunk) + (rest > 0 ? OperatorsUs(rest) : 0);
}

double StepCost::ForwardUs(double num_tokens, double num_outputs, double attention_us) const {
  const double layer_us = ChunkedOperatorsUs(num_tokens) + attention_us + device_.launch_us;
  double output_us = 0;
  if (num_outputs > 0) {
    output_us = ProductUs(num_outputs, shape_.hidden_size, shape_.vocab_size, 2);
  }
  return layer_us * shape_.num_layers + output_us;
}

double StepCost::StepUs(const StepPlan& plan, const KvReads& reads) const {
  double num_tokens = 0, num_rows = 0, num_outputs = 0;
  double attention_us = DecodeAttentionUs(DecodesOf(plan), reads);
  const auto add = [&](std::span<const PlanRow> rows, bool prefill) {
    for (const PlanRow& row : rows) {
      num_tokens += static_cast<double>(row.tokens.size());
      num_rows += 1;
      num_outputs += !row.draws.empty() || row.read != nullptr;
      if (prefill) attention_us += AttentionUs(row, static_cast<double>(row.tokens.size()));
    }
  };
  if (const auto* oneshot = std::get_if<OneShotPlan>(&plan)) add(oneshot->rows, true);
  if (const auto* mixed = std::get_if<MixedPlan>(&plan)) add(mixed->prefills, true);
  add(DecodesOf(plan), false);
  double total_us = ForwardUs(num_tokens, num_outputs, attention_us);
  if (const double stages = parallelism_.pipeline; stages > 1) {
    const auto piped_us = [&](double batches) {
      const double bytes = num_tokens / batches * shape_.hidden_size * kActivationBytes;
      return ForwardUs(num_tokens / batches, num_outputs / batches, attention_us / batches) *
                 (batches + stages - 1) / stages +
             (stages - 1) * (device_.link_us + bytes / (device_.link_gbps * 1e3));
    };
    const double most =
        std::max(std::ceil(num_tokens / kMicroBatchTokens), std::min(num_rows, stages));
    total_us = piped_us(1);
    for (double batches = 2; batches <= most; ++batches) {
      total_us = std::min(total_us, piped_us(batches));
    }
  }
  return device_.step_us + device_.row_us * num_rows + HostCopiesUs(HostCopiesOf(plan)) + total_us;
}

}  // namespace skein
