#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "kernels/kernels.h"

namespace skein {

// The peaks of this machine with all threads of a team.
struct MachineLimits {
  double amx_bf16_tflops = 0;  // 0 where there is no matrix unit
  double amx_int8_tflops = 0;  // the same; multiplications and additions of integers
  double fma_f32_tflops = 0;   // with AVX2 where that is the instruction set, else the widest here
  double read_gbps = 0;        // reading memory that no cache holds
  double avx512_bf16_tflops = 0;  // 0 without AVX512-BF16
  // Integers by vectors, as products of int8 on the instruction set have them: VNNI, or AVX2's
  // three instructions.
  double vector_int8_tflops = 0;

  // The peak of products with matrices of this type (kBf16 or kInt8) on this instruction set. The
  // FMA class computes bf16 in f32. 0: not measured.
  double compute_tflops(Isa isa, DType dtype) const {
    if (dtype == DType::kInt8) return isa == Isa::kAmx ? amx_int8_tflops : vector_int8_tflops;
    if (isa == Isa::kAvx512Bf16 && dtype == DType::kBf16) return avx512_bf16_tflops;
    return isa == Isa::kAmx ? amx_bf16_tflops : fma_f32_tflops;
  }
};

// Measures the limits in bursts of about 10 ms. A shared machine's move within seconds, so what is
// compared with them has bursts beside it. The operands are random numbers: zeros run faster than
// any real product. Holds 512 MiB, which the bursts of reading walk through.
class LimitMeter {
 public:
  // kUnsupported without AVX2. `team` outlives the meter.
  static Result<std::unique_ptr<LimitMeter>> Make(ThreadTeam* team);

  double AmxBf16Tflops();            // 0 where there is no matrix unit
  double Avx512Bf16Tflops();         // 0 without AVX512-BF16
  double AmxInt8Tflops();            // 0 where there is no matrix unit
  double VectorInt8Tflops(Isa isa);  // as MachineLimits says
  double FmaTflops(Isa isa);         // as MachineLimits says
  double ReadGbps();

  // The limits that RooflineSeconds needs for weights of `dtype` on `isa`; the rest is 0.
  MachineLimits Now(Isa isa, DType dtype);

 private:
  explicit LimitMeter(ThreadTeam* team);

  template <typename Peak>
  double Tflops(const Peak& peak);

  ThreadTeam* const team_;
  AlignedBuffer operands_;
  AlignedBuffer memory_;
  std::vector<float> factors_;
  std::vector<uint64_t> sums_;  // of each part of the memory
  size_t next_part_ = 0;
};

// Figure by figure.
MachineLimits MedianOf(const std::vector<MachineLimits>& limits);
MachineLimits MeanOf(const MachineLimits& a, const MachineLimits& b);

// Medians of `num_runs` bursts of each figure, in turn; vector FMAs as kernels on `isa` have them.
MachineLimits MeasureLimits(LimitMeter& meter, Isa isa, int num_runs);

// The time that the limits allow for a product with weights of `dtype` at least, in seconds:
// computing, where its limit was measured, or reading the weights, whichever takes longer.
double RooflineSeconds(const MachineLimits& limits, Isa isa, DType dtype, double flops,
                       double weight_bytes);

// {"compute_tflops" (of products with weights of `dtype` on `isa`; null: not measured),
// "read_gbps"}.
nlohmann::ordered_json LimitsToJson(const MachineLimits& limits, Isa isa, DType dtype);

}  // namespace skein
