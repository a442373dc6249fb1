#pragma once

#include <cstdint>

#include "kernels/kernels.h"
#include "kernels/quantize.h"

namespace skein {

// AttentionCall as plain pointers. It has been checked, and head_dim <= kMaxHeadDim.
struct AttentionArgs {
  const AttentionRow* rows = nullptr;
  int32_t num_rows = 0;
  const std::byte* kv = nullptr;
  const std::byte* own_kv = nullptr;  // for block ids from num_blocks on
  int32_t num_blocks = 0;
  size_t block_bytes = 0;  // from one block to the next
  size_t k_bytes = 0;      // from a block's K to its V
  int32_t head_dim = 0;
  int32_t head_dim_padded = 0;
  float scale = 1.0f;
  float soft_cap = 0.0f;
  int64_t piece_stride = kRowPiece;
  DType dtype = DType::kF32;  // of the rows' q and out
};

// The operations of one instruction set as plain functions. The caller (CpuKernels) checks the
// arguments. Only plain data is passed to the translation units that are compiled for an
// instruction set, so that no inline function of a library is compiled for it.
struct CpuOps {
  void (*gemm_f32)(const GemmCall& call);
  void (*gemm_bf16)(const GemmCall& call);
  void (*gemm_int8)(const GemmCall& call);
  void (*gemm_blocks)(const GemmCall& call);
  void (*attention_f32)(const AttentionArgs& args);
  void (*attention_bf16)(const AttentionArgs& args);
  void (*attention_int8)(const AttentionArgs& args);
  void (*rms_norm)(const float* x, const float* weight, float eps, int32_t n, void* out,
                   DType out_dtype, int64_t piece_stride);
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float eps, int32_t n,
                     void* out, DType out_dtype);
  void (*activate)(Activation activation, const float* x, int32_t n, void* out, DType out_dtype);
  void (*rotate)(const RotateCall& call);
  void (*silu_mul)(const float* gate, const float* up, int32_t n, void* out, DType out_dtype);
  void (*sigmoid_mul)(const float* gate, int32_t n, void* x, DType dtype);
  void (*soft_cap)(float* x, int32_t n, float cap);
  void (*conv)(const ConvCall& call);
  void (*delta)(const DeltaCall& call);
  void (*convert)(const float* x, int32_t n, void* out, DType out_dtype);
  float (*quantize)(const void* x, DType dtype, int32_t n, int8_t* out);
  void (*quantize_blocks)(const void* x, DType dtype, int32_t n, int8_t* out, RowBlock* blocks);
  // The sum whose logarithm LogSumExp needs: sum(exp(x - max)).
  float (*sum_exp)(const float* x, float max, int32_t n);
  void (*exp_shifted)(const float* x, float shift, int32_t n, float* out);
  Kernels::Largest (*find_largest)(const float* x, int32_t n, float* group_max);
  void (*weigh)(const float* x, float max, float temperature, int32_t n, float* weights,
                double* group_sums);
  int32_t (*find_at_least)(const float* x, int32_t n, float floor, const float* group_max,
                           int32_t* ids);
  int32_t (*rank_of)(const float* x, int32_t n, int32_t index);
};

CpuOps ScalarOps();
CpuOps Avx2Ops();
CpuOps AvxVnniOps();
CpuOps Avx512Ops();  // without gemm_int8, gemm_blocks and attention_int8
// Products and attention of the BF16 class, by vdpbf16ps or by FMAs.
void Avx512Bf16Gemm(const GemmCall& call);
void Avx512Bf16Attention(const AttentionArgs& args);
void Avx512Bf16FmaGemm(const GemmCall& call);
void Avx512Bf16FmaAttention(const AttentionArgs& args);
// Measures whether a vdpbf16ps takes less time than the two FMAs that compute the same. It takes
// half of it on AMD's Zen 4, and twice as long on Intel's Sapphire Rapids. About 0.3 ms.
bool Avx512Bf16DotsAreFast();
void Avx512VnniGemm(const GemmCall& call);
void Avx512VnniGemmBlocks(const GemmCall& call);
void Avx512VnniAttention(const AttentionArgs& args);  // of int8
// Avx512Ops without gemm_blocks and attention_int8, and with gemm_bf16, gemm_int8 and
// attention_bf16 on the matrix unit.
CpuOps AmxOps();
// Products of at least 16 rows of at most kMaxAmxBlockTerms elements.
void AmxGemmBlocks(const GemmCall& call);
inline constexpr int32_t kMaxAmxBlockTerms = 40960;
void AmxAttention(const AttentionArgs& args);  // of bf16

}  // namespace skein
