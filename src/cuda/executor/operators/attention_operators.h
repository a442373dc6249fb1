#pragma once

#include <cstdint>

#include "cuda/executor/activations.h"
#include "cuda/executor/cuda_context.h"
#include "cuda/executor/device_batch.h"
#include "cuda/executor/launcher.h"
#include "cuda/executor/operators/layer_op.h"
#include "cuda/executor/operators/operator_slices.h"
#include "cuda/kernels/args.h"
#include "model/config/config.h"

namespace skein::cuda {

// Attention of a layer on a device: from q, and keys and values in KV blocks, to the rows that o
// multiplies. In layers without a window, walks of shared prefixes come before the others, whose
// tiles go on from them.
class AttentionOperators {
 public:
  // Everything is borrowed. `config`: the rank's share.
  AttentionOperators(const CudaContext& context, const ModelConfig& config,
                     const Activations* memory, const DeviceBatch* integers, Launcher* launcher)
      : context_(context),
        config_(config),
        dtype_(context.model.weights->dtype),
        memory_(memory),
        integers_(integers),
        launcher_(*launcher) {}

  // Launches a slice of the attention of `layer`, for the tokens of a chunk. The slice counts the
  // tiles of shared prefixes, then the others. `gathered`: those of the gathered tokens alone.
  void Run(int32_t layer, const ChunkRows& rows, const OperatorSlice& slice, bool gathered);

 private:
  // The arguments that all launches of a layer have.
  AttentionArgs ArgsOf(const DeviceBatch::Tiles& tiles, const ChunkRows& rows) const;
  // The tiles [begin, end) of shared prefixes.
  void WalkPrefixes(const DeviceBatch::Tiles& tiles, AttentionArgs args, int32_t begin,
                    int32_t end);
  // The other tiles [begin, end), of up to `rows` rows each.
  void Walk(const DeviceBatch::Tiles& tiles, AttentionArgs args, int32_t begin, int32_t end,
            int32_t rows);
  RelativeTerms Terms(int32_t num_tokens) const;
  const float* Sinks() const;
  bool is_local() const { return config_.IsLocal(layer_); }

  const CudaContext& context_;
  const ModelConfig& config_;
  const DType dtype_;
  const Activations* const memory_;
  const DeviceBatch* const integers_;
  Launcher& launcher_;
  int32_t layer_ = 0;
};

}  // namespace skein::cuda
