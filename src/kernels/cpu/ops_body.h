#pragma once

#include "kernels/cpu/attention/attention_body.h"
#include "kernels/cpu/delta_body.h"
#include "kernels/cpu/draw_body.h"
#include "kernels/cpu/gemm_body.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/rowwise_body.h"

namespace skein {

// All operations for the vector type V, except gemm_int8, gemm_blocks and attention_int8.
template <class V>
inline constexpr CpuOps kOpsOf = {
    .gemm_f32 = Gemm<V, false>,
    .gemm_bf16 = Gemm<V, true>,
    .attention_f32 = Attention<V, FloatProducts<V, false>>,
    .attention_bf16 = Attention<V, FloatProducts<V, true>>,
    .rms_norm = RmsNorm<V>,
    .layer_norm = LayerNorm<V>,
    .activate = Activate<V>,
    .rotate = Rotate<V>,
    .silu_mul = SiluMul<V>,
    .sigmoid_mul = SigmoidMul<V>,
    .soft_cap = SoftCap<V>,
    .conv = Conv<V>,
    .delta = Delta<V>,
    .convert = Convert<V>,
    .quantize = Quantize<V>,
    .quantize_blocks = QuantizeBlocks<V>,
    .sum_exp = SumExp<V>,
    .exp_shifted = ExpShifted<V>,
    .find_largest = FindLargest<V>,
    .weigh = Weigh<V>,
    .find_at_least = FindAtLeast<V>,
    .rank_of = RankOf<V>,
};

}  // namespace skein
