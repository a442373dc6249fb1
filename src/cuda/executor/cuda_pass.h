#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "cuda/device/device.h"
#include "cuda/executor/cuda_context.h"
#include "cuda/executor/operators/layer_walk.h"
#include "cuda/executor/operators/operator_slices.h"
#include "cuda/executor/operators/output_operators.h"
#include "cuda/executor/pass_graphs.h"
#include "cuda/executor/pass_rank.h"
#include "cuda/kernels/args.h"
#include "model/forward/batch.h"
#include "model/forward/context.h"
#include "model/forward/layout.h"
#include "model/forward/pass.h"
#include "model/forward/workspace.h"
#include "runtime/step_outputs.h"

namespace skein::cuda {

enum class PassStatus {
  kRunning,
  kOutputs,  // the outputs of a chunk are being copied to the host
  kResult,   // the last layer's results are being copied; the processor computes the outputs
  kDone,
};

// One forward pass over a batch, operator by operator, on one device or on several together: each
// gets its part of an operator in turn, so all stop behind the same one. The first computes the
// outputs alone. It rounds at the same points as ForwardPass, so that the bits are equal if the
// class of products is. Its activations are allocated once.
//
//   fill batch() --> Begin --> Step, Step, ... --+--> kDone
//                                ^               |
//                                |-- output(i) <-+ kOutputs
//                                                +--> BeginOutputsOnHost: kResult
class CudaPass {
 public:
  // contexts: one for each rank, in order. carried_state: DeviceBatch. Fails as Device::Allocate
  // does.
  static Result<std::unique_ptr<CudaPass>> Make(std::span<const CudaContext> contexts,
                                                const ForwardLimits& limits, int32_t carried_state);

  ForwardBatch& batch() { return batch_; }
  // Sets up the pass; gives the device no launch. The commands of the pass before have passed.
  // `needs`: of each row of logits; valid until the pass is done. REQUIRES: as ForwardPass::Begin.
  Status Begin(std::span<const BlockCopy> copies, std::span<const LogitNeeds> needs);

  // Gives the device the commands of the next operator, or of the next slice of a long one. After
  // kOutputs, the outputs of chunk() are being copied to the host: output() may be called once a
  // mark after these commands has passed. A pass whose outputs the processor
  // computes ends with kResult.
  PassStatus Step();
  // The time that the device takes for these commands, by estimate.
  double step_us() const { return step_us_; }
  // Whether the next operator is the first of a layer or of a chunk of outputs.
  bool AtListBegin() const {
    return slice_ == 0 && (part_ == Part::kLayers ? walk_.at_begin() : output_op_ == 0);
  }
  // Sets the longest time of a slice, for later passes.
  void set_slice_us(double slice_us) { slice_us_ = slice_us; }
  // TileCutter::set_always_shares, for later passes.
  void set_always_shares(bool always_shares) { always_shares_ = always_shares; }

  const OutputChunk& chunk() const { return layout_.outputs()[chunk_]; }
  // The chunk's outputs, once they are on the host.
  OutputOperators& outputs() { return outputs_; }
  // Once a mark after kResult has passed: a pass that computes the outputs on the processor. It is
  // valid until the next Begin.
  ForwardPass& BeginOutputsOnHost();

  // On all devices together.
  int64_t activation_bytes() const;

 private:
  enum class Part : uint8_t { kInput, kLayers, kOutputs };
  explicit CudaPass(PassRanks ranks);
  bool Finished() const;
  // The tokens of the batch's graph, those that pad it included; 0: it runs operator by operator.
  int32_t TokensOfGraph(std::span<const BlockCopy> copies) const;
  // Makes draws_.
  void CollectDraws();
  Status FindGraph();
  // The slices of the operator at hand: of at most so much time.
  std::span<const OperatorSlice> Slices(double slice_us);
  void BeginLayer(int32_t layer);
  void LayerOperator();
  void Input();
  void Input(PassRank& rank);
  void AddToInput(PassRank& rank, const float* table, const int32_t* rows);
  void BeginChunk();
  void OutputOperator();
  void CopyResult();
  void SetNumTokens(int32_t num_tokens);
  const ModelConfig& config() const { return context_.model.weights->config; }

  const PassRanks ranks_;
  PassRank& lead_;  // the first of them
  const CudaContext& context_ = lead_.context;
  const ForwardLimits& limits_ = lead_.limits;
  const DType dtype_;
  ForwardBatch batch_;
  BatchLayout layout_;
  std::span<const LogitNeeds> needs_;
  std::vector<RowDraw> draws_;  // of each row of logits; empty: the device makes no random draw
  int32_t num_tokens_ = 0;      // of the batch, those that pad it included
  PassGraphs graphs_;
  std::optional<int32_t> graph_;  // of the pass at hand
  Part part_ = Part::kInput;
  int32_t layer_ = 0;
  LayerWalk walk_{lead_.layers, lead_.integers, limits_.chunk()};
  int32_t chunk_ = 0;  // of outputs
  int output_op_ = 0;
  int32_t slice_ = 0;
  double slice_us_ = kSliceUs;
  bool always_shares_ = false;
  double step_us_ = 0;
  OperatorSlices slices_;
  // The rows that slices_ are those of.
  struct SlicedRows {
    bool gathered = false;  // in a layer that gathers, from kAttention on
    int32_t chunk = 0, count = 0;
    friend bool operator==(const SlicedRows&, const SlicedRows&) = default;
  };
  SlicedRows sliced_;

  OutputOperators outputs_{context_, &lead_.memory, &lead_.integers, &lead_.launcher};
  std::unique_ptr<ForwardPass> on_host_;  // null: the device computes the outputs
};

}  // namespace skein::cuda
