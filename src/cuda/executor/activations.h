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

// The facts from which the memory of a pass follows, beside its limits.
struct ActivationShape {
  explicit ActivationShape(const ModelConfig& model_config)
      : config(&model_config), num_kv_heads(model_config.num_kv_heads) {}
  // That of a context's passes.
  explicit ActivationShape(const CudaContext& context);

  const ModelConfig* config;
  DType dtype = DType::kBf16;     // the compute type
  DType matrices = DType::kBf16;  // the type of the weights
  int64_t num_positions = 0;      // of the longest row
  int64_t kv_block_bytes = 0;     // of one layer
  int32_t num_kv_heads;           // of the rank
  bool shares_prefixes = true;    // ForwardContext::share_attention
  bool leads = true;              // whether it computes outputs (rank.h)
  bool outputs = true;            // DeviceComputesOutputs
  bool means = false;             // whether outputs are means of tokens
  int32_t lora_rank = 0;          // of the widest change of a product; 0: there are no adapters
  bool changes_gates = false;     // whether an adapter changes gate and up
};

// The memory of one pass on a device. Buffers that the model does not need are empty. chunk:
// ForwardLimits::chunk(). A matrix with `chunk` rows has those of the chunk at hand (LayerWalk). In
// the last layer, q and x also take the rows that kGather moves (LayerOperators).
struct Activations {
  // A matrix whose rows are multiplied with weights.
  struct Operand {
    Buffer buffer;
    DType dtype = DType::kBf16;  // by default the compute type
    int64_t width = 0;           // elements of a padded row
    int64_t filled = 0;          // of these, those that are not zero

    // The address of a row.
    std::byte* Row(int64_t row) const {
      return buffer.as<std::byte>() + row * width * static_cast<int64_t>(SizeOf(dtype));
    }
  };
  // Those of a mixture of experts (GemmGroups, ChooseExpertsArgs).
  struct Experts {
    // f32 [chunk, num_experts]; with a shared expert, [chunk, columns of the router].
    Buffer logits;
    Buffer chosen;          // int32 [chunk, experts_per_token]
    Buffer weights;         // f32 [chunk, experts_per_token]
    Buffer counts;          // int32 [num_experts]
    Buffer slots;           // int32 [num_experts, chunk]
    Operand act;            // [chunk * experts_per_token, expert_size]
    Buffer out;             // f32 [chunk * experts_per_token, hidden]
    Operand shared_act;     // [chunk, shared_expert_size]
    Buffer shared_weights;  // f32 [chunk]
  };

  // Those of linear layers, and of gates of attention (LinearLayers).
  struct Linear {
    Buffer sums;   // f32 [chunk, the wider of the layers' width() and q_width]
    Buffer qkv;    // f32 [chunk, conv_width]: behind the convolution
    Buffer gates;  // DeltaGates [chunk, num_v_heads]
    Operand out;   // [chunk, v_width]
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
    Operand u;         // f32 [chunk, the widest rank]
    Buffer gate_sums;  // f32 [chunk, 2 * intermediate_padded]: gate and up before the gate
  };
  // Those of outputs that are read from many tokens, f32 [max_tokens, hidden].
  struct OfTokens {
    Buffer normed;   // the tokens whose means are outputs
    Buffer on_host;  // x on the host, if the processor computes the outputs
  };
  // The largest logits of outputs, and their random draws.
  struct Largest {
    Buffer of_rows;  // RowLargest [max_logit_rows]
    Buffer parts;    // PartLargest [max_logit_rows, parts of a row]
    Buffer best;     // f32 [max_logit_rows, groups of a row] (DrawArgs)
    Buffer sums;     // f64 [max_logit_rows, groups of a row]
    Buffer on_host;  // of_rows on the host
  };

  // Allocates all of it, on a rank that does not lead without the memory of outputs. Fails as
  // Device::Allocate does. `limits` are those of the pass.
  static Result<Activations> Make(const CudaContext& context, const ForwardLimits& limits);
  // The bytes that Make takes on the device.
  static int64_t Bytes(const ActivationShape& shape, const ForwardLimits& limits);

  Buffer x;          // f32 [max_tokens, hidden]: the residual stream
  Operand q;         // [max_tokens, num_heads * head_dim]
  Buffer qkv;        // f32 [chunk, the width of q, k and v, or hidden if it is wider]
  Operand h, attn;   // [chunk, ...]
  Operand act;       // [chunk, DenseMlpSize]
  Operand head_act;  // the same in the layers of a decision head
  Buffer up;         // f32 [chunk, the widest of the two]: for MLPs without a gate
  Buffer branch;     // f32 [chunk, hidden]: results that a norm, a scale or a weight changes
  Buffer own_kv;     // blocks [max_own_blocks] of one layer
  Partial partial;
  Buffer int8, scales;  // [chunk, ...], or of a chunk's slots: rows in int8 (QuantizeArgs)
  Experts experts;
  Linear linear;
  Relative relative;
  Lora lora;
  Operand output_h;  // [max_logit_rows, hidden]
  Buffer outputs;    // f32 [max_logit_rows, the widest output]
  Buffer on_host;    // outputs on the host
  OfTokens of_tokens;
  Largest largest;
  int64_t bytes = 0;  // on the device

 private:
  // Without a device, these count the bytes alone.
  Status Allocate(const ActivationShape& shape, const ForwardLimits& limits);
  Status AllocatePartial(const ActivationShape& shape, const ForwardLimits& limits);
  Status AllocateOutputs(const ActivationShape& shape, const ForwardLimits& limits);
  Status AllocateLora(const ActivationShape& shape, int64_t rows);
  Status AllocateLinear(const ModelConfig& config, int64_t rows);
  Status AllocateExperts(const ModelConfig& config, int64_t rows);
  Status AllocateInt8(const ActivationShape& shape, int64_t rows);
  Status Add(size_t size, Buffer* buffer);
  Status AddOnHost(size_t size, Buffer* buffer);
  Status Add(int64_t rows, int64_t width, Operand* operand) {
    return Add(rows, width, dtype_, operand);
  }
  Status Add(int64_t rows, int64_t width, DType dtype, Operand* operand);

  Device* device_ = nullptr;
  DType dtype_ = DType::kBf16;
};

// The rows of an operand from one of them on.
struct OperandRows {
  OperandRows(const Activations::Operand& operand, int64_t first = 0)
      : data(operand.Row(first)),
        dtype(operand.dtype),
        width(operand.width),
        filled(operand.filled) {}

  std::byte* data;
  DType dtype;
  int64_t width, filled;  // as in Operand
};

// The limits of a pass on a device, for the limits that are asked for. The layers of DeBERTa
// (RelativeTerms) have no chunks: their products of heads read q and k of the whole batch.
ForwardLimits LimitsOnDevice(const ModelConfig& config, ForwardLimits limits);

}  // namespace skein::cuda
