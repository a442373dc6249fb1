#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "cuda/device/device.h"
#include "cuda/executor/cuda_context.h"
#include "model/forward/context.h"
#include "model/forward/workspace.h"

namespace skein::cuda {

// The intermediate size of the layers without experts; 0: all layers have experts.
int32_t DenseMlpSize(const ModelConfig& config);

// The memory of one pass on a device. Buffers that the model does not need are empty. In the last
// layer, q and qkv also take the rows that kGather moves (LayerOperators).
struct Activations {
  // A matrix whose rows are multiplied with weights.
  struct Operand {
    Buffer buffer;
    DType dtype = DType::kBf16;  // by default the compute type
    int64_t width = 0;           // elements of a padded row
    int64_t filled = 0;          // of these, those that are not zero
  };
  // Those of a mixture of experts (GemmGroups, ChooseExpertsArgs).
  struct Experts {
    // f32 [max_tokens, num_experts]; with a shared expert, [max_tokens, columns of the router].
    Buffer logits;
    Buffer chosen;          // int32 [max_tokens, experts_per_token]
    Buffer weights;         // f32 [max_tokens, experts_per_token]
    Buffer counts;          // int32 [num_experts]
    Buffer slots;           // int32 [num_experts, max_tokens]
    Operand act;            // [max_tokens * experts_per_token, expert_size]
    Buffer out;             // f32 [max_tokens * experts_per_token, hidden]
    Operand shared_act;     // [max_tokens, shared_expert_size]
    Buffer shared_weights;  // f32 [max_tokens]
  };

  // Those of linear layers, and of gates of attention (LinearLayers).
  struct Linear {
    Buffer sums;   // f32 [max_tokens, the wider of the layers' width() and q_width]
    Buffer qkv;    // f32 [max_tokens, conv_width]: behind the convolution
    Buffer gates;  // DeltaGates [max_tokens, num_v_heads]
    Operand out;   // [max_tokens, v_width]
  };

  // Those of RelativeTerms: heads of q, then heads of k.
  struct Relative {
    Operand heads;  // [2 * num_heads * max_tokens, head_dim]
    Buffer terms;   // f32 [2 * num_heads * max_tokens, rows of the table]
  };
  // AttentionArgs::partial: of some tiles, and of all walks of shared prefixes.
  struct Partial {
    Buffer tiles, prefixes;
  };
  // Those of adapters.
  struct Lora {
    Operand u;         // f32 [max_tokens, the widest rank]
    Buffer gate_sums;  // f32 [max_tokens, 2 * intermediate_padded]: gate and up before the gate
  };
  // The largest logits of outputs.
  struct Largest {
    Buffer of_rows;  // RowLargest [max_logit_rows]
    Buffer parts;    // PartLargest [max_logit_rows, parts of a row]
    Buffer on_host;  // of_rows on the host
  };

  // Allocates all of it, on a rank that does not lead without the memory of outputs. Fails as
  // Device::Allocate does. `limits` are those of the pass.
  static Result<Activations> Make(const CudaContext& context, const ForwardLimits& limits);

  Buffer x;            // f32 [max_tokens, hidden]: the residual stream
  Buffer qkv;          // f32 [max_tokens, the width of q, k and v, or hidden if it is wider]
  Operand h, q, attn;  // [max_tokens, ...]
  Operand act;         // [max_tokens, DenseMlpSize]
  Operand head_act;    // the same in the layers of a decision head
  Buffer up;           // f32 [max_tokens, the widest of the two]: for MLPs without a gate
  Buffer branch;       // f32 [max_tokens, hidden]: results that a norm, a scale or a weight changes
  Buffer own_kv;       // blocks [max_own_blocks] of one layer
  Partial partial;
  Buffer int8, scales;  // rows in int8 for the next product (QuantizeArgs)
  Experts experts;
  Linear linear;
  Relative relative;
  Lora lora;
  Operand output_h;  // [max_logit_rows, hidden]
  Buffer outputs;    // f32 [max_logit_rows, the widest output]
  Buffer on_host;    // the same on the host
  Buffer x_on_host;  // f32 [max_tokens, hidden], if the processor computes the outputs
  Largest largest;
  int64_t bytes = 0;  // on the device

 private:
  Status Allocate(const ForwardContext& model, const ForwardLimits& limits);
  Status AllocateOutputs(const ModelWeights& weights, const ForwardLimits& limits);
  Status AllocateLora(const ForwardContext& model, int64_t tokens);
  Status AllocateLinear(const ModelConfig& config, int64_t tokens);
  Status AllocateInt8(const ModelConfig& config, DType matrices, int64_t tokens);
  Status AllocateExperts(const ModelConfig& config, int64_t tokens);
  Status Add(size_t size, Buffer* buffer);
  Status Add(int64_t rows, int64_t width, Operand* operand) {
    return Add(rows, width, dtype_, operand);
  }
  Status Add(int64_t rows, int64_t width, DType dtype, Operand* operand);

  Device* device_ = nullptr;
  DType dtype_ = DType::kBf16;
};

}  // namespace skein::cuda
