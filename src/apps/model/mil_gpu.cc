#include "apps/model/mil_gpu.h"

#include <fmt/format.h>

#include "base/byte_size.h"
#include "cuda/executor/device_plan.h"

namespace skein {

Result<Json> PlanOnGpu(const ModelConfig& config, DType dtype,
                       std::span<const PrefillMode* const> modes, const std::string& memory) {
  SKEIN_ASSIGN_OR_RETURN(const int64_t gpu_bytes, ParseByteSize("gpu", memory));
  const int64_t weight_bytes = config.NumParameters() * static_cast<int64_t>(SizeOf(dtype));
  if (weight_bytes >= gpu_bytes) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("gpu is {} bytes, of which the weights take {}", gpu_bytes, weight_bytes),
        "gpu");
  }
  const int64_t left_bytes = cuda::PlannedBytes(gpu_bytes - weight_bytes);
  Json json = {{"gpu_bytes", gpu_bytes},
               {"weight_bytes", weight_bytes},
               {"memory_bytes", left_bytes},
               {"modes", Json::array()}};
  fmt::print("a GPU with {}: {} for prompts beside weights of {} (computed, not run)\n", memory,
             FormatByteSize(left_bytes), FormatByteSize(weight_bytes));
  for (const PrefillMode* mode : modes) {
    if (!cuda::DeviceHas(*mode)) continue;
    const auto bytes = [&](int32_t n) { return cuda::DeviceRequestBytes(config, dtype, *mode, n); };
    const int32_t tokens = MaxInputTokens(left_bytes, bytes);
    const int64_t of_token = (bytes(65536) - bytes(32768)) / 32768;
    fmt::print("  {:<20}{:>9} tokens{:>10} bytes each\n", mode->name, tokens, of_token);
    json["modes"].push_back(
        {{"mode", mode->name}, {"max_input_tokens", tokens}, {"bytes_per_token", of_token}});
  }
  return json;
}

}  // namespace skein
