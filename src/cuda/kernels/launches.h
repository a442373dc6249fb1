#pragma once

#include "base/dtype.h"
#include "cuda/device/launch.h"
#include "cuda/kernels/args.h"

namespace skein::cuda {

// Makes launches of the kernels, with the grid and the shared memory that the arguments need.
// `dtype` is the compute type unless stated otherwise.

// `table` is the type of the table; kInt8 needs panels.
Launch EmbedLaunch(DType table, bool panels, const EmbedArgs& args);
Launch RmsNormLaunch(DType dtype, const RmsNormArgs& args);
Launch QuantizeLaunch(DType dtype, const QuantizeArgs& args);
Launch StoreHeadsLaunch(DType dtype, const StoreHeadsArgs& args);
Launch CopySlotsLaunch(DType dtype, const CopySlotsArgs& args);
// REQUIRES: head_dim is at most kMaxHeadDim.
Launch AttentionLaunch(DType dtype, const AttentionArgs& args);
Launch MergeSegmentsLaunch(DType dtype, const AttentionArgs& args);
// The size of AttentionArgs::partial in bytes.
int64_t PartialBytes(const AttentionArgs& args);

// Products of at most this number of rows read the weights once for each 16 rows.
inline constexpr int32_t kFewRows = 64;
// `dtype` is the type of the operands, `gated` the type of a gated output.
Launch GemmLaunch(DType dtype, GemmOutput output, DType gated, const GemmArgs& args);

}  // namespace skein::cuda
