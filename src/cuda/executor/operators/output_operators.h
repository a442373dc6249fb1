#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cuda/executor/activations.h"
#include "cuda/executor/cuda_context.h"
#include "cuda/executor/device_batch.h"
#include "cuda/executor/launcher.h"
#include "model/forward/layout.h"
#include "runtime/step_outputs.h"

namespace skein::cuda {

// The operators of a chunk of outputs, in the order they run. Some launch nothing for some kinds.
enum OutputOp { kOutputNorm, kOutputMean, kHeadDense, kHead };
inline constexpr int kOutputOps = kHead + 1;

// The operators behind the layers of one pass on a device, chunk by chunk, and their outputs.
// REQUIRES: DeviceComputesOutputs.
class OutputOperators {
 public:
  // Everything is borrowed.
  OutputOperators(const CudaContext& context, const Activations* memory,
                  const DeviceBatch* integers, Launcher* launcher)
      : context_(context),
        dtype_(context.model.weights->dtype),
        memory_(memory),
        integers_(integers),
        launcher_(*launcher),
        wide_(context.model.weights->config.vocab_size) {}

  // The chunk at hand: number `index` of the batch's. num_outputs: those that pad it included.
  // `result`: the residual stream behind the last layer. needs: as CudaPass::Begin, of the batch's
  // rows of logits.
  void Begin(int32_t index, const OutputChunk& chunk, int32_t num_outputs, const float* result,
             std::span<const LogitNeeds> needs);

  void Run(int op);
  // Finds the largest logit of each output, and makes the random draws of the chunk.
  void DrawTokens();
  // Starts the copy of the outputs to the host. `has_tokens`: DrawTokens has run.
  void Copy(bool has_tokens);
  // Once they are on the host: starts the copy of the logits of draws that the device has left to
  // the host. Returns whether there are any; the next call returns false.
  bool CopyLeft();

  // Once they are on the host, as ForwardPass::output. An output of labels is valid until the next
  // call; other outputs are thread-safe.
  float* output(int32_t i);
  // The largest of row i of the logits, or the token drawn from it, if the logits are not on the
  // host; null: output(i) is.
  const RowLargest* drawn(int32_t i) const {
    return IsDrawn(i) && !IsLeft(i) ? memory_->largest.on_host.as<RowLargest>() + i : nullptr;
  }

  // The shape of the product of operator kHead: its output's columns and its terms. 0: none.
  int32_t head_columns() const;
  int32_t head_terms() const { return head().k; }

 private:
  // Whether the outputs are states, which no product follows.
  bool are_states() const {
    return chunk_.kind == OutputKind::kEmbedding || chunk_.kind == OutputKind::kStates;
  }
  bool are_classes() const { return chunk_.kind == OutputKind::kClasses; }
  const DeviceBatch::Outputs& tokens() const { return integers_->outputs(index_); }
  const DeviceMatrix& head() const {
    return are_classes() ? context_.weights->head_out : context_.weights->output;
  }
  // Elements of an output on the device.
  int32_t width() const { return are_states() ? config().hidden_size : head_columns(); }
  float* normed() const { return memory_->of_tokens.normed.as<float>(); }

  void Norm();
  // The norm of the outputs' tokens: in f32, or rounded.
  void NormTo(float* normed, const Activations::Operand* rounded);
  void Mean();
  void HeadDense();
  void Head();
  void FindLargest();
  void CopyRows(int32_t begin, int32_t end);
  void CopyLogits(bool has_tokens);
  // Whether the device draws the token of row i, and has then left it to the host.
  bool IsDrawn(int32_t i) const;
  bool IsLeft(int32_t i) const {
    return memory_->largest.on_host.as<RowLargest>()[i].left_to_host != 0;
  }
  const ModelConfig& config() const { return context_.model.weights->config; }

  const CudaContext& context_;
  const DType dtype_;
  const Activations* const memory_;
  const DeviceBatch* const integers_;
  Launcher& launcher_;
  int32_t index_ = 0;
  OutputChunk chunk_;
  int32_t num_outputs_ = 0;
  const float* result_ = nullptr;
  std::span<const LogitNeeds> needs_;
  bool has_left_ = false;    // CopyLeft has to look for rows
  std::vector<float> wide_;  // [vocab]: one output of labels
};

}  // namespace skein::cuda
