// Products of bf16 with vdpbf16ps: the BF16 class of docs/numerics.md. avx512.cc explains the order
// of includes.

// g++ 12 warns of deliberately undefined inputs inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include <algorithm>
#include <chrono>

#include "kernels/cpu/ops.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")

#include "kernels/cpu/vec_avx512.h"
// These bodies must come after the vector type that they use.
#include "kernels/cpu/gemm_dot_body.h"
// This body must come after the tiles.
#include "kernels/cpu/bf16_dot_body.h"

namespace skein {
namespace {

// The seconds of 12,288 steps of independent sums.
template <class Step>
double SecondsOfSteps() {
  constexpr int kSums = 24, kSteps = 512;
  alignas(64) const std::byte operands[kGroupBytes] = {};
  const typename Step::Row row = Step::LoadRow(operands);
  const typename Step::Columns columns = Step::LoadColumns(operands);
  __m512 sums[kSums];
#pragma GCC unroll 24
  for (int i = 0; i < kSums; ++i) {
    sums[i] = Step::Zero();
    asm("" : "+v"(sums[i]));  // the compiler may not know that all are alike
  }
  const auto start = std::chrono::steady_clock::now();
  for (int s = 0; s < kSteps; ++s) {
#pragma GCC unroll 24
    for (int i = 0; i < kSums; ++i) sums[i] = Step::Add(sums[i], row, columns);
  }
#pragma GCC unroll 24
  for (int i = 0; i < kSums; ++i) asm volatile("" : : "v"(sums[i]));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

bool Avx512Bf16DotsAreFast() {
  // The least of several measurements in turn: a processor needs a while to turn wide vectors on.
  constexpr int kMeasurements = 16;
  double dots = SecondsOfSteps<Bf16Dot>(), fmas = SecondsOfSteps<Bf16Fmas<true>>();
  for (int m = 1; m < kMeasurements; ++m) {
    dots = std::min(dots, SecondsOfSteps<Bf16Dot>());
    fmas = std::min(fmas, SecondsOfSteps<Bf16Fmas<true>>());
  }
  return dots < fmas;
}

void Avx512Bf16Gemm(const GemmCall& call) { GemmDots<Bf16Product<Bf16Dot>>(call); }
void Avx512Bf16FmaGemm(const GemmCall& call) { GemmDots<Bf16Product<Bf16Fmas<true>>>(call); }

}  // namespace skein
