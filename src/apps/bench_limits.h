#pragma once

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "base/thread_team.h"
#include "kernels/kernels.h"

namespace skein {

// What this machine reaches at most with all threads of a team, as medians of runs that alternate
// between the figures.
struct MachineLimits {
  double amx_bf16_tflops = 0;  // 0 where there is no matrix unit
  double amx_int8_tflops = 0;  // the same; multiplications and additions of integers
  double fma_f32_tflops = 0;   // with the widest vectors here
  double read_gbps = 0;        // reading memory that no cache holds

  // Of products with matrices of this type (kBf16 or kInt8) on this instruction set: the FMA class
  // computes bf16 in f32. 0: not measured, which are those of int8 without the matrix unit.
  double compute_tflops(Isa isa, DType dtype) const {
    if (dtype == DType::kInt8) return isa == Isa::kAmx ? amx_int8_tflops : 0;
    return isa == Isa::kAmx ? amx_bf16_tflops : fma_f32_tflops;
  }
};

// Takes about num_runs * 0.05 s and, meanwhile, 512 MiB. The operands are random numbers: zeros run
// faster than any real product. kUnsupported without AVX2.
Result<MachineLimits> MeasureLimits(ThreadTeam& team, int num_runs);

// The time that the limits allow for a product with weights of `dtype` at least, in seconds:
// computing, where its limit was measured, or reading the weights, whichever takes longer.
double RooflineSeconds(const MachineLimits& limits, Isa isa, DType dtype, double flops,
                       double weight_bytes);

// {"compute_tflops" (of products with weights of `dtype` on `isa`; null: not measured),
// "read_gbps", "fma_f32_tflops"}.
nlohmann::ordered_json LimitsToJson(const MachineLimits& limits, Isa isa, DType dtype);

}  // namespace skein
