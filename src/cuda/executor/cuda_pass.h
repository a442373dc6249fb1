#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "cuda/device/device.h"
#include "cuda/executor/activations.h"
#include "cuda/executor/cuda_context.h"
#include "cuda/executor/device_batch.h"
#include "cuda/executor/launcher.h"
#include "cuda/executor/operators/layer_operators.h"
#include "cuda/executor/operators/operator_slices.h"
#include "cuda/executor/operators/output_operators.h"
#include "cuda/executor/pass_graphs.h"
#include "cuda/kernels/args.h"
#include "model/forward/batch.h"
#include "model/forward/context.h"
#include "model/forward/layout.h"
#include "model/forward/pass.h"
#include "model/forward/workspace.h"

namespace skein::cuda {

enum class PassStatus {
  kRunning,
  kOutputs,  // the outputs of a chunk are being copied to the host
  kResult,   // the last layer's results are being copied; the processor computes the outputs
  kDone,
};

// One forward pass over a batch on the device, operator by operator. It rounds at the same points
// as ForwardPass, so that the bits are equal if the class of products is. Its activations are
// allocated once.
//
//   fill batch() --> Begin --> Step, Step, ... --+--> kDone
//                                ^               |
//                                |-- output(i) <-+ kOutputs
//                                                +--> BeginOutputsOnHost: kResult
class CudaPass {
 public:
  // Fails as Device::Allocate does.
  static Result<std::unique_ptr<CudaPass>> Make(const CudaContext& context,
                                                const ForwardLimits& limits);

  ForwardBatch& batch() { return batch_; }
  // Sets up the pass; gives the device no launch. The commands of the pass before have passed.
  // `largest_alone`: for each row of logits whether its largest alone is wanted; valid until the
  // pass is done. REQUIRES: as ForwardPass::Begin.
  Status Begin(std::span<const BlockCopy> copies, std::span<const uint8_t> largest_alone);

  // Gives the device the commands of the next operator, or of the next slice of a long one. After
  // kOutputs, the outputs of chunk() are being copied to the host: output() may be called once a
  // mark after these commands has passed. A pass whose outputs the processor
  // computes ends with kResult.
  PassStatus Step();
  // The time that the device takes for these commands, by estimate.
  double step_us() const { return step_us_; }
  // Whether the next operator is the first of a layer or of a chunk of outputs.
  bool AtListBegin() const { return op_ == 0 && slice_ == 0; }
  // Sets the longest time of a slice, for later passes.
  void set_slice_us(double slice_us) { slice_us_ = slice_us; }

  const OutputChunk& chunk() const { return layout_.outputs()[chunk_]; }
  // The chunk's outputs, once they are on the host.
  OutputOperators& outputs() { return outputs_; }
  // Once a mark after kResult has passed: a pass that computes the outputs on the processor. It is
  // valid until the next Begin.
  ForwardPass& BeginOutputsOnHost();

  int64_t activation_bytes() const { return memory_.bytes; }

 private:
  enum class Part : uint8_t { kInput, kLayers, kOutputs };
  CudaPass(const CudaContext& context, const ForwardLimits& limits);
  bool Finished() const;
  // The tokens of the batch's graph, those that pad it included; 0: it runs operator by operator.
  int32_t TokensOfGraph(std::span<const BlockCopy> copies) const;
  Status FindGraph();
  void AssignSlices(double slice_us);
  std::span<const OperatorSlice> SlicesOf(int op) const;
  void LayerOperator();
  void Input();
  void AddToInput(const float* table, const int32_t* rows);
  void BeginChunk();
  void OutputOperator();
  void CopyResult();
  const ModelConfig& config() const { return context_.model.weights->config; }

  const CudaContext context_;
  const ForwardLimits limits_;
  const DType dtype_;
  ForwardBatch batch_;
  BatchLayout layout_;
  DeviceBatch integers_;
  std::span<const uint8_t> largest_alone_;
  int32_t num_tokens_ = 0;  // of the batch, those that pad it included
  PassGraphs graphs_;
  std::optional<int32_t> graph_;  // of the pass at hand
  Part part_ = Part::kInput;
  int32_t layer_ = 0;
  int32_t chunk_ = 0;
  int op_ = 0;
  int32_t slice_ = 0;
  double slice_us_ = kSliceUs;
  double step_us_ = 0;
  OperatorSlices slices_;
  OperatorSlices gathered_slices_;  // of the last layer, if it gathers rows: kAttention and behind

  Activations memory_;
  Launcher launcher_{context_, &memory_};
  LayerOperators layers_{context_, limits_, &memory_, &integers_, &launcher_};
  OutputOperators outputs_{context_, &memory_, &integers_, &launcher_};
  std::unique_ptr<ForwardPass> on_host_;  // null: the device computes the outputs
};

}  // namespace skein::cuda
