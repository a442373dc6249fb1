#pragma once

#include <cstdint>

#include "cuda/executor/activations.h"
#include "model/forward/workspace.h"
#include "runtime/memory_plan.h"

namespace skein::cuda {

// The tokens of a chunk in hybrid execution on a device. An H200 multiplies 2,048 rows as fast as
// any number, and 512 rows up to a third slower (docs/gpu.md, "Persistent blocks"). So these are
// four times as many as on the processor.
inline constexpr int32_t kDeviceChunkTokens = 2048;

// The most bytes that steps with these limits take on a device, without the weights, the states of
// linear layers and the pool of KV blocks: the activations of the steps that keep their state,
// rotation angles up to max_model_len, and the integers of batches. shape: of the device's rank;
// its num_positions are not read.
int64_t DeviceStepBytes(const ActivationShape& shape, const ForwardLimits& limits,
                        int32_t max_model_len, const StepStates& states = {});

// Whether a device has a mode of the processor's: it does not collect the outputs of chunks.
bool DeviceHas(const PrefillMode& mode);
// The bytes on a device, besides the weights, for a request of `num_tokens` tokens in this mode
// that reads labels. REQUIRES: DeviceHas.
int64_t DeviceRequestBytes(const ModelConfig& config, DType dtype, const PrefillMode& mode,
                           int32_t num_tokens);

// The memory for prompts, of what a device has beside the weights. The driver needs the rest.
int64_t PlannedBytes(int64_t free_bytes);

}  // namespace skein::cuda
