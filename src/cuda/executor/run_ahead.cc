#include "cuda/executor/run_ahead.h"

#include <algorithm>

namespace skein::cuda {
namespace {

// Assumed: a launch takes this time at least, and a device multiplies and adds this often in a
// microsecond (200 TFLOP/s).
constexpr double kLeastUsOfOperator = 4.0;
constexpr double kProductsPerUs = 1e8;
// Norm, qkv, heads, attention, o, norm, gate and up, down.
constexpr double kOperatorsOfLayer = 8.0;

// The products of one layer.
double ProductsOfLayer(const ModelConfig& c, const ForwardBatch& batch) {
  const double q_width = double{1} * c.num_heads * c.head_dim;
  const double kv_width = double{1} * c.num_kv_heads * c.head_dim;
  const double mlp_width = c.num_experts > 0 ? double{1} * c.experts_per_token * c.expert_size
                                             : double{1} * c.intermediate_size;
  const double of_token = c.hidden_size * (2 * q_width + 2 * kv_width + 3 * mlp_width);
  double keys = 0;  // that the tokens see, together
  for (const ForwardRow& row : batch.rows) {
    keys += double{1} * row.num_tokens * (row.begin + 0.5 * row.num_tokens);
  }
  return batch.num_tokens() * of_token + keys * 2 * q_width;
}

}  // namespace

int32_t OperatorsPerMark(const ModelConfig& config, const ForwardBatch& batch, int64_t ahead_us) {
  const double operator_us =
      kLeastUsOfOperator + ProductsOfLayer(config, batch) / kOperatorsOfLayer / kProductsPerUs;
  const double operators = static_cast<double>(ahead_us) / kMarksAhead / operator_us;
  return static_cast<int32_t>(std::clamp<double>(operators, 1, kMostOperatorsPerMark));
}

}  // namespace skein::cuda
