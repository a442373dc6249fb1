#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "cuda/device/device.h"
#include "cuda/executor/device_batch.h"
#include "cuda/executor/device_weights.h"
#include "cuda/kernels/args.h"
#include "model/forward/batch.h"
#include "model/forward/context.h"
#include "model/forward/layout.h"
#include "model/forward/workspace.h"

namespace skein::cuda {

// The data that passes on a device share. It is borrowed and outlives the passes.
struct CudaContext {
  Device* device = nullptr;
  const DeviceWeights* weights = nullptr;
  // The model on the host: its config, its KV layout, the positions of its rope. The member kv is
  // null.
  ForwardContext model;
  uint8_t* kv = nullptr;       // [model.kv_layout.total_bytes()], on the device
  const float* cos = nullptr;  // [positions, rotary_dim / 2], on the device
  const float* sin = nullptr;
};

enum class PassStatus { kRunning, kOutputs, kDone };

// One forward pass over a batch on the device, operator by operator. It rounds at the same points
// as ForwardPass, so that the bits are equal if the class of products is. Its activations are
// allocated once.
//
//   fill batch() --> Begin --> Step, Step, ... --+--> kDone
//                                ^               |
//                                +-- output(i) <-+ kOutputs
class CudaPass {
 public:
  // Fails as Device::Allocate does.
  static Result<std::unique_ptr<CudaPass>> Make(const CudaContext& context,
                                                const ForwardLimits& limits);

  ForwardBatch& batch() { return batch_; }
  // Prepares the pass; does not launch a kernel. The commands of the previous pass must have ended.
  // REQUIRES: as ForwardPass::Begin.
  Status Begin(std::span<const BlockCopy> copies);

  // Gives the device the commands of the next operator. After kOutputs, the outputs of chunk() are
  // being copied to the host: output() may be called once a mark after these commands has passed.
  PassStatus Step();
  // Whether the next operator is the first of a layer or of a chunk of outputs.
  bool AtListBegin() const { return op_ == 0; }

  const OutputChunk& chunk() const { return layout_.outputs()[chunk_]; }
  // Called once for each chunk, when its outputs are on the host.
  void TakeOutputs();
  // As ForwardPass::output. An output of labels is valid until the next call; other outputs are
  // thread-safe.
  float* output(int32_t i);

  int64_t activation_bytes() const { return bytes_; }

 private:
  enum class Part : uint8_t { kInput, kLayers, kOutputs };
  // A matrix of T whose rows are multiplied by weights.
  struct Operand {
    Buffer buffer;
    int64_t width = 0;   // elements of a row, padding included
    int64_t filled = 0;  // elements of a row without its padding of zeros
  };

  CudaPass(const CudaContext& context, const ForwardLimits& limits);
  Status Allocate();
  Status Add(size_t bytes, Buffer* buffer);
  Status AddOperand(int64_t rows, int64_t width, Operand* operand);

  bool Finished() const;
  void Input();
  void LayerOperator(int op);
  void OutputOperator(int op);

  void Norm(const float* weight, const int32_t* rows, int32_t num_rows, DType out_dtype, void* out,
            int64_t ldo);
  // out = in · w^T for `m` rows. For int8 weights, the rows are rounded to int8 first.
  void Multiply(const Operand& in, const DeviceMatrix& w, GemmOutput output, GemmArgs args);
  void StoreHeads();
  void CopyForks();
  void Attend();
  void GateUp();
  void Head();
  KvPointers LayerKv(int32_t layer) const;
  const DeviceLayer& layer() const { return context_.weights->layers[layer_]; }
  const ModelConfig& config() const { return context_.model.weights->config; }
  int64_t q_width() const { return int64_t{config().num_heads} * config().head_dim; }
  int64_t qkv_width() const {
    return q_width() + int64_t{2} * config().num_kv_heads * config().head_dim;
  }

  const CudaContext context_;
  const ForwardLimits limits_;
  const DType dtype_;
  ForwardBatch batch_;
  BatchLayout layout_;
  DeviceBatch integers_;
  Part part_ = Part::kInput;
  int32_t layer_ = 0;
  int32_t chunk_ = 0;
  int op_ = 0;

  Buffer x_;                 // f32 [max_tokens, hidden]: the residual stream
  Operand h_, q_, attn_;     // [max_tokens, ...]
  Operand act_;              // [max_tokens, intermediate]
  Buffer qkv_;               // f32 [max_tokens, qkv_width]
  Buffer own_kv_;            // blocks [max_own_blocks] of one layer
  Buffer partial_;           // AttentionArgs::partial for some tiles
  Buffer int8_, scales_;     // rows rounded to int8 for the next product
  Operand output_h_;         // [max_logit_rows, hidden]
  Buffer outputs_;           // f32 [max_logit_rows, the widest output]
  Buffer on_host_;           // the outputs on the host
  std::vector<float> wide_;  // [vocab]: one output for labels
  int64_t bytes_ = 0;
};

}  // namespace skein::cuda
