#pragma once

#include <cstdint>

#include "cuda/executor/activations.h"
#include "cuda/executor/cuda_context.h"
#include "cuda/executor/device_batch.h"
#include "cuda/executor/launcher.h"
#include "cuda/executor/operators/layer_op.h"

namespace skein::cuda {

// The operators of a linear layer on a device. They begin behind the product of its input, and end
// with the rows that o multiplies (docs/numerics.md, "Linear layers"). The states of rows are
// in slots, as on the processor (StateLayout).
class LinearOperators {
 public:
  // Everything is borrowed.
  LinearOperators(const CudaContext& context, const Activations* memory,
                  const DeviceBatch* integers, Launcher* launcher)
      : context_(context), memory_(memory), integers_(integers), launcher_(*launcher) {}

  // Launches an operator of `layer`, from kDeltaGates to kGatedNorm, for the tokens of a chunk.
  void Run(int op, int32_t layer, const ChunkRows& rows);

 private:
  void Gates(const DeviceLinear& weights);
  void Conv(const DeviceLinear& weights);
  void ScaleHeads();
  void Delta();
  void GatedNorm(const DeviceLinear& weights);

  const LinearLayers& shape() const { return context_.model.weights->config.decoder.linear; }
  const StateLayout& layout() const { return context_.model.state_layout; }
  const Activations::Linear& memory() const { return memory_->linear; }
  // The layer's states in slot 0.
  float* states() const;

  const CudaContext& context_;
  const Activations* const memory_;
  const DeviceBatch* const integers_;
  Launcher& launcher_;
  int32_t layer_ = 0;
  ChunkRows rows_;
};

}  // namespace skein::cuda
