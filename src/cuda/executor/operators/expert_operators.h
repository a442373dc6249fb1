#pragma once

#include <cstdint>

#include "cuda/executor/activations.h"
#include "cuda/executor/cuda_context.h"
#include "cuda/executor/launcher.h"
#include "cuda/executor/operators/operator_slices.h"

namespace skein::cuda {

// The operators of a mixture of experts on a device, behind the norm of the MLP (docs/numerics.md,
// "Experts"). Slots are those of ChooseExpertsArgs.
class ExpertOperators {
 public:
  // Everything is borrowed. `share`: the rank's share of the config.
  ExpertOperators(const CudaContext& context, const ModelConfig& share, const ForwardLimits& limits,
                  const Activations* memory, Launcher* launcher)
      : context_(context),
        config_(share),
        columns_(ColumnsOf(context.rank, share.hidden_size)),
        limits_(limits),
        memory_(memory),
        launcher_(*launcher) {}

  // Launches a slice of an operator of `layer`, from kRoute to kSumExperts, for the rows of a
  // chunk. The last of them adds to the residual stream x [num_rows, hidden], and adds the result
  // of the shared expert, which lies in the branch.
  void Run(int op, int32_t layer, const OperatorSlice& slice, int32_t num_rows, float* x);

 private:
  void Route(const DeviceLayer& layer);
  void Choose(const DeviceLayer& layer);
  void ListSlots();
  void GateUp(const DeviceLayer& layer);
  void Down(const DeviceLayer& layer);
  void Sum(float* x);
  // The products of the slice's experts. `in` has num_rows rows.
  void Multiply(GemmOutput output, const Activations::Operand& in, int32_t num_rows,
                const DeviceMatrix& w, int32_t slots_per_row, GemmArgs args);

  const Activations::Experts& memory() const { return memory_->experts; }
  int32_t num_slots() const { return num_rows_ * config_.experts_per_token; }
  DType dtype() const { return context_.model.weights->dtype; }
  // The rank's columns of a matrix of the residual stream's width.
  float* columns_of(float* matrix) const { return matrix + columns_.begin; }

  const CudaContext& context_;
  const ModelConfig& config_;
  const ColumnRange columns_;
  const ForwardLimits& limits_;
  const Activations* const memory_;
  Launcher& launcher_;
  OperatorSlice slice_;
  int32_t num_rows_ = 0;
};

}  // namespace skein::cuda
