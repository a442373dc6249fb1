#pragma once

#include <cstdint>

#include "cuda/executor/activations.h"
#include "cuda/executor/cuda_context.h"
#include "cuda/executor/device_batch.h"
#include "cuda/executor/launcher.h"
#include "cuda/executor/operators/attention_operators.h"
#include "cuda/executor/operators/expert_operators.h"
#include "cuda/executor/operators/layer_op.h"
#include "cuda/executor/operators/linear_operators.h"
#include "cuda/executor/operators/lora_operators.h"
#include "cuda/executor/operators/operator_slices.h"

namespace skein::cuda {

// A matrix of which each rank has computed its columns (ColumnsOf).
struct SharedMatrix {
  std::byte* data = nullptr;  // [num_rows, width]; null: there is none
  DType dtype = DType::kF32;
  int32_t num_rows = 0;
  int64_t width = 0;    // elements of a row
  int32_t columns = 0;  // of all ranks, at the begin of a row
};

// The operators of the layers of one pass on a device. The rounding points are those of the
// processor's. An operator computes the rows of a chunk (LayerWalk). In the last layer, kGather
// moves the rows of the gathered tokens (DeviceBatch) to the front, and the operators behind it
// have these rows alone:
//
//   attention's results   memory.attn --> memory.q
//   residual stream       memory.x    --> memory.x
class LayerOperators {
 public:
  LayerOperators(const LayerOperators&) = delete;
  // Everything is borrowed.
  LayerOperators(const CudaContext& context, const ForwardLimits& limits, const Activations* memory,
                 const DeviceBatch* integers, Launcher* launcher)
      : context_(context),
        config_(ShareOf(context.rank, context.model.weights->config)),
        limits_(limits),
        dtype_(context.model.weights->dtype),
        memory_(memory),
        integers_(integers),
        launcher_(*launcher),
        attention_(context, config_, memory, integers, launcher),
        linear_(context, memory, integers, launcher),
        experts_(context, config_, limits, memory, launcher),
        lora_(context, memory, launcher) {}

  // Finds the adapters of a batch. `layout`: with the active tokens of the last layer.
  void FindAdapters(const ForwardBatch& batch, const BatchLayout& layout) {
    lora_.Assign(batch, layout);
  }
  void set_num_tokens(int32_t num_tokens) { num_tokens_ = num_tokens; }
  void set_layer(int32_t layer) { layer_ = layer; }
  // Whether the layer at hand gathers rows: its attention is that of the gathered tokens, too.
  bool Gathers() const {
    return integers_->num_gathered() > 0 && layer_ + 1 == config().num_layers;
  }
  // Whether the layer at hand has an operator, and the launches of a slice of it for these rows.
  bool Has(int op) const;
  void Run(int op, const ChunkRows& rows, const OperatorSlice& slice);
  // The rows that every rank needs as a whole behind an operator that has run for these rows.
  SharedMatrix SharedBehind(int op, const ChunkRows& rows) const;
  // Whether ranks wait for each other behind an operator without such rows. kGather writes whole
  // rows of the residual stream. kMlpBranch reads the branch, and so do the other ranks when this
  // one writes that of the next chunk: in other layers, attention comes between.
  bool MeetsBehind(int op, const ChunkRows& rows) const {
    const bool more = rows.first + rows.count < integers_->num_gathered();
    return op == kGather || (op == kMlpBranch && Gathers() && more);
  }

 private:
  using Operand = Activations::Operand;

  // out = in · w^T [+ out] for the slice's rows, with the changes of their adapters.
  void Multiply(LoraProduct product, const OperandRows& in, const DeviceMatrix& w,
                GemmOutput output, GemmArgs args);
  void MultiplyGated();
  LoraOperators::Product Of(LoraProduct product) const {
    return {product, layer_, rows_.first, slice_, gathered_};
  }
  void Norm(const float* weight, const float* bias, bool replaces_x);
  void BeginHead();
  void Activate();
  void Attention(int op);
  void Mlp(int op);
  // x = x + in · w^T, or the branch instead of x, for the slice's rows.
  void MultiplyToResidual(LoraProduct product, const OperandRows& in, const DeviceMatrix& w,
                          const float* bias);
  void AddBranch(const float* norm);
  void NormHeads();
  void StoreHeads();
  void RoundHeads();
  void MultiplyTerms();
  void CopyForks();
  void Gather();
  // attn = attn * sigmoid(gate).
  void GateAttention();
  // The rows that o multiplies.
  OperandRows attn() const {
    if (gathered_) return {memory_->q, rows_.first};
    return config().IsLinear(layer_) ? memory_->linear.out : memory_->attn;
  }
  // The rows, and the residual stream, of the operator at hand.
  int32_t num_rows() const { return rows_.count; }
  const Operand& act() const {
    if (config().HasExperts(layer_)) return memory_->experts.shared_act;
    return config().IsHeadLayer(layer_) ? memory_->head_act : memory_->act;
  }
  // Whether the layer has an MLP, which is the shared expert of a mixture.
  bool has_mlp() const { return !config().HasExperts(layer_) || config().MlpSize(layer_) > 0; }
  float* x() const { return XFrom(rows_.first); }
  float* XFrom(int64_t row) const { return memory_->x.as<float>() + row * whole().hidden_size; }
  const DeviceLayer& layer() const { return context_.weights->layers[layer_]; }
  // The rank's share, and that of a matrix of the residual stream's width.
  const ModelConfig& config() const { return config_; }
  ColumnRange columns() const { return ColumnsOf(context_.rank, config_.hidden_size); }
  float* columns_of(float* matrix) const { return matrix + columns().begin; }
  const ModelConfig& whole() const { return context_.model.weights->config; }
  int64_t q_width() const { return int64_t{config().num_heads} * config().head_dim; }
  int64_t qkv_width() const {
    return q_width() + int64_t{2} * config().num_kv_heads * config().head_dim;
  }

  const CudaContext& context_;
  const ModelConfig config_;
  const ForwardLimits& limits_;
  const DType dtype_;
  const Activations* const memory_;
  const DeviceBatch* const integers_;
  Launcher& launcher_;
  AttentionOperators attention_;
  LinearOperators linear_;
  ExpertOperators experts_;
  LoraOperators lora_;
  int32_t num_tokens_ = 0;
  int32_t layer_ = 0;
  ChunkRows rows_;         // of the operator at hand
  OperatorSlice slice_;    // of these
  bool gathered_ = false;  // whether it is behind kGather
};

}  // namespace skein::cuda
