#pragma once

#include "base/dtype.h"
#include "cuda/device/launch.h"
#include "cuda/kernels/args.h"

namespace skein::cuda {

// Launches of the kernels, with the grid and the shared memory that the arguments need. `dtype` is
// the compute type unless it says otherwise.

// `table`: the type of the table, kInt8 only of panels.
Launch EmbedLaunch(DType table, bool panels, const EmbedArgs& args);
Launch RmsNormLaunch(DType dtype, const RmsNormArgs& args);
Launch QuantizeLaunch(DType dtype, const QuantizeArgs& args);
Launch StoreHeadsLaunch(DType dtype, const StoreHeadsArgs& args);
Launch CopySlotsLaunch(DType dtype, const CopySlotsArgs& args);
// head_dim is at most kMaxHeadDim.
Launch AttentionLaunch(DType dtype, const AttentionArgs& args);
Launch MergeSegmentsLaunch(DType dtype, const AttentionArgs& args);
// Bytes of AttentionArgs::partial.
int64_t PartialBytes(const AttentionArgs& args);

// Products of at most this many rows stream the weights once for each 16 rows.
inline constexpr int32_t kFewRows = 64;
// `dtype`: the type of the operands. `gated`: of a gated output.
Launch GemmLaunch(DType dtype, GemmOutput output, DType gated, const GemmArgs& args);

}  // namespace skein::cuda
