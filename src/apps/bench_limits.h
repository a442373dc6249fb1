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
  double fma_f32_tflops = 0;   // with the widest vectors here
  double read_gbps = 0;        // reading memory that no cache holds

  // Of bf16 products on this instruction set: the FMA class computes them in f32.
  double compute_tflops(Isa isa) const {
    return isa == Isa::kAmx ? amx_bf16_tflops : fma_f32_tflops;
  }
};

// Takes about num_runs * 0.05 s and, meanwhile, 512 MiB. The operands are random numbers: zeros run
// faster than any real product. kUnsupported without AVX2.
Result<MachineLimits> MeasureLimits(ThreadTeam& team, int num_runs);

// The time that the limits allow for a product at least, in seconds: computing or reading the
// weights, whichever takes longer.
double RooflineSeconds(const MachineLimits& limits, Isa isa, double flops, double weight_bytes);

// {"compute_tflops" (of bf16 products on `isa`), "read_gbps", "fma_f32_tflops"}.
nlohmann::ordered_json LimitsToJson(const MachineLimits& limits, Isa isa);

}  // namespace skein
