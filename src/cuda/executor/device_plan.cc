#include "cuda/executor/device_plan.h"

#include <algorithm>

#include "base/check.h"
#include "cuda/kernels/draws/draw_args.h"

namespace skein::cuda {
namespace {

// For each token: its entries in DeviceBatch (token, position, block, tables, tiles, outputs), with
// room for twice as many, since their memory grows by doubling.
constexpr int64_t kListBytesPerToken = 64;
constexpr int64_t kListBytesPerDraw = 2 * sizeof(RowDraw);

}  // namespace

int64_t DeviceStepBytes(const ActivationShape& shape, const ForwardLimits& limits,
                        int32_t max_model_len, const StepStates& states) {
  const ModelConfig& config = *shape.config;
  ActivationShape of_length = shape;
  of_length.num_positions = max_model_len;
  const auto step = [&](const ForwardLimits& of) {
    return Activations::Bytes(of_length, LimitsOnDevice(config, of)) +
           kListBytesPerToken * std::max(of.max_tokens, max_model_len) +
           kListBytesPerDraw * of.max_logit_rows;
  };
  const int64_t decodes =
      states.num_decodes > 0 ? step(DecodeLimits(limits, states.num_decodes)) : 0;
  return states.num_steps * step(limits) + decodes + RopeBytes(config, max_model_len);
}

bool DeviceHas(const PrefillMode& mode) { return mode.chunk_outputs == ChunkOutputs::kInPlace; }

int64_t DeviceRequestBytes(const ModelConfig& config, DType dtype, const PrefillMode& mode,
                           int32_t num_tokens) {
  SKEIN_CHECK(DeviceHas(mode));
  ActivationShape shape(config);
  shape.dtype = shape.matrices = dtype;
  shape.kv_block_bytes = KvBlockBytes(config, dtype) / config.num_kv_layers();
  ForwardLimits limits = LimitsOf(mode, num_tokens);
  if (mode.execution == Execution::kHybrid) limits.chunk_tokens = kDeviceChunkTokens;
  return DeviceStepBytes(shape, limits, num_tokens) +
         KvBlocksOf(mode, num_tokens) * KvBlockBytes(config, dtype);
}

int64_t PlannedBytes(int64_t free_bytes) { return free_bytes / 10 * 9; }

}  // namespace skein::cuda
