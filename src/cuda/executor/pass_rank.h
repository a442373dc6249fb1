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
                                                const ForwardLimits& limits, int32_t carried_state);

  const CudaContext context;
  const ForwardLimits limits;
  const int32_t carried_state;
  DeviceBatch integers{context.device, context.model, limits.chunk(), carried_state};
  Activations memory;
  Launcher launcher{context, &memory};
  LayerOperators layers{context, limits, &memory, &integers, &launcher};
};
using PassRanks = std::vector<std::unique_ptr<PassRank>>;

// Gives the devices the commands behind the last slice of an operator, for these rows: every rank
// gets the columns that the others have computed. Returns the time that they take, by estimate.
//
//   rank 0:  operator | columns to all others | mark | wait for the others' marks | next operator
//
// Between two meetings, a rank touches only its own columns of the matrix that is completed at the
// next one. So nobody reads a column, or writes it, while another rank writes it. Operators with a
// meeting of their own: LayerOperators::MeetsBehind.
double ShareBehind(const PassRanks& ranks, int op, const ChunkRows& rows);

// The other ranks wait until the first has run the commands that it has, and the other way round.
void WaitForLead(const PassRanks& ranks);
void LetLeadWait(const PassRanks& ranks);

}  // namespace skein::cuda
