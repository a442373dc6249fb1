#pragma once

#include <cstdint>

#include "cuda/executor/activations.h"
#include "cuda/executor/cuda_context.h"
#include "cuda/executor/device_batch.h"
#include "cuda/executor/launcher.h"

namespace skein::cuda {

// The operators of a layer, in the order they run. A layer has some of them. A pass can stop before
// any.
enum LayerOp {
  kAttnNorm,
  kQkv,
  kQkvNorm,
  kStoreHeads,
  kFork,
  kAttention,
  kO,
  kAttnBranch,
  kMlpNorm,
  kGateUp,
  kDown,
  kMlpBranch,
  kRoute,
  kChooseExperts,
  kListSlots,
  kExpertGateUp,
  kExpertDown,
  kSumExperts,
};
inline constexpr int kLayerOps = kSumExperts + 1;

// The operators of the layers of one pass on a device. The rounding points are those of the
// processor's.
class LayerOperators {
 public:
  // Everything is borrowed.
  LayerOperators(const CudaContext& context, const ForwardLimits& limits, const Activations* memory,
                 const DeviceBatch* integers, Launcher* launcher)
      : context_(context),
        limits_(limits),
        dtype_(context.model.weights->dtype),
        memory_(memory),
        integers_(integers),
        launcher_(*launcher) {}

  void set_num_tokens(int32_t num_tokens) { num_tokens_ = num_tokens; }
  void set_layer(int32_t layer) { layer_ = layer; }
  // Whether the layer at hand has an operator, and its launches.
  bool Has(int op) const;
  void Run(int op);

 private:
  using Operand = Activations::Operand;

  void Attention(int op);
  void Mlp(int op);
  void Experts(int op);
  // x = x + in · w^T, or the branch instead of x, for all tokens.
  void MultiplyToResidual(const Operand& in, const DeviceMatrix& w, const float* bias);
  void AddBranch(const float* norm);
  void NormHeads();
  void StoreHeads();
  void CopyForks();
  void Attend();
  const DeviceLayer& layer() const { return context_.weights->layers[layer_]; }
  const ModelConfig& config() const { return context_.model.weights->config; }
  int64_t q_width() const { return int64_t{config().num_heads} * config().head_dim; }
  int64_t qkv_width() const {
    return q_width() + int64_t{2} * config().num_kv_heads * config().head_dim;
  }

  const CudaContext& context_;
  const ForwardLimits& limits_;
  const DType dtype_;
  const Activations* const memory_;
  const DeviceBatch* const integers_;
  Launcher& launcher_;
  int32_t num_tokens_ = 0;
  int32_t layer_ = 0;
};

}  // namespace skein::cuda
