#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernels.h"

// The definitions of docs/numerics.md as plain loops over plain arrays. Every fast kernel is tested
// against them, bit for bit. Values of bf16 tensors are passed widened to f32. Each function sets
// the floating-point mode itself. Slow; thread-safe.
namespace skein::reference {

struct GemmShape {
  int32_t m, n, k;
};
// out[m, n] = [out +] (a[m, k] · w[n, k]^T + bias[n]); bias may be null.
void Gemm(NumericClass numeric_class, GemmShape shape, const float* a, const float* w,
          const float* bias, bool add_to_out, float* out);

// sum + a · b over k terms, in the order in which the BF16 class continues a sum.
float AddBf16Pairs(float sum, const float* a, const float* b, int32_t k);

// Rounds x [n] to q [n]; returns the scale.
float Quantize(std::span<const float> x, int8_t* q);

// Gemm with int8 weights, the same in every class: both operands are quantized row by row.
void GemmInt8(GemmShape shape, const float* a, const float* w, const float* bias, bool add_to_out,
              float* out);

// Gemm with a matrix of blocks w [n, k], the same in every class: each 32 elements of a row are
// quantized.
void GemmBlocks(GemmShape shape, const float* a, const PackedWeight& w, const float* bias,
                bool add_to_out, float* out);

// One query row over k, v [num_keys, head_dim]. The result out [head_dim] is rounded to dtype.
struct AttentionInput {
  const float* q;
  const float* k;
  const float* v;
  int32_t num_keys;
  int32_t head_dim;
  float scale;
  DType dtype;
  KeyWindow window = {};              // of the keys; all keys exist
  const uint32_t* visible = nullptr;  // AttentionRow::visible
  const float* terms = nullptr;       // AttentionRow::terms
  float sink = AttentionRow().sink;
  float soft_cap = 0;  // AttentionCall::soft_cap
  bool int8 = false;   // keys and values are rounded to int8; the same in every class then
};
void Attention(NumericClass numeric_class, const AttentionInput& input, float* out);

float Exp(float x);
void RmsNorm(std::span<const float> x, const float* weight, float eps, float* out);
void LayerNorm(std::span<const float> x, const float* weight, const float* bias, float eps,
               float* out);
float Activate(Activation activation, float x);
float Gated(Activation activation, float gate, float up);
void Rope(std::span<float> x, const float* cos, const float* sin);
void SiluMul(std::span<const float> gate, const float* up, float* out);
void SigmoidMul(std::span<const float> gate, float* x);
void SoftCap(std::span<float> x, float cap);
// The definitions of Kernels::Conv and Kernels::Delta.
void Conv(const ConvCall& call);
void Delta(const DeltaCall& call);
Kernels::Largest FindLargest(std::span<const float> x);
float LogSumExp(std::span<const float> x, float max);
// weights [n]; group_sums [NumRowGroups(n)].
void Weigh(std::span<const float> x, float max, float temperature, float* weights,
           double* group_sums);

}  // namespace skein::reference
