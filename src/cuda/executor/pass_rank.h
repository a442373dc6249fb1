#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "cuda/executor/activations.h"
#include "cuda/executor/cuda_context.h"
#include "cuda/executor/device_batch.h"
#include "cuda/executor/launcher.h"
#include "cuda/executor/operators/layer_operators.h"
#include "model/forward/workspace.h"

namespace skein::cuda {

// The part of a pass that one device has.
struct PassRank {
  // Fails as Device::Allocate does.
  static Result<std::unique_ptr<PassRank>> Make(const CudaContext& context,
                                                const ForwardLimits& limits);

  const CudaContext context;
  const ForwardLimits limits;
  DeviceBatch integers{context.device, context.model, limits};
  Activations memory;
  Launcher launcher{context, &memory};
  LayerOperators layers{context, limits, &memory, &integers, &launcher};
};
using PassRanks = std::vector<std::unique_ptr<PassRank>>;

// Gives the devices the commands behind the last slice of a layer's operator: every rank gets the
// columns that the others have computed. Returns the time that they take, by estimate.
//
//   rank 0:  operator | columns to all others | mark | wait for the others' marks | next operator
//
// Between two meetings, a rank touches only its own columns of the matrix that is completed at the
// next one. So nobody reads a column, or writes it, while another rank writes it. kGather, which
// writes whole rows of the residual stream, has a meeting of its own behind it.
double ShareBehind(const PassRanks& ranks, int op);

// The other ranks wait until the first has run the commands that it has, and the other way round.
void WaitForLead(const PassRanks& ranks);
void LetLeadWait(const PassRanks& ranks);

}  // namespace skein::cuda
