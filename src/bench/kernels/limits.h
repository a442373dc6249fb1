#pragma once

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/result.h"
#include "base/threads/thread_team.h"
#include "kernels/kernels.h"

namespace skein {

// The peak rates of this machine, with all threads of a team.
struct MachineLimits {
  double amx_bf16_tflops = 0;  // 0 without a matrix unit
  double amx_int8_tflops = 0;  // 0 without one; counts multiplications and additions of integers
  // With AVX2's vectors if the instruction set is AVX2 or AVX-VNNI, otherwise with the widest.
  double fma_f32_tflops = 0;
  double read_gbps = 0;           // for reading memory that is in no cache
  double avx512_bf16_tflops = 0;  // 0 without AVX512-BF16
  // Rate of integer products on vectors, with the instructions of int8 products on the instruction
  // set: VNNI, AVX-VNNI, or AVX2's three instructions.
  double vector_int8_tflops = 0;

  // The peak rate of products with matrices of this type (kBf16, kInt8 or kBlocks) on this
  // instruction set. The FMA class computes bf16 in f32. Blocks are multiplied as int8, with few
  // rows on vectors. On a matrix unit a block of 32 terms fills half of a tile's row. 0: not
  // measured.
  double compute_tflops(Isa isa, DType dtype) const {
    if (dtype == DType::kBlocks) {
      return isa == Isa::kAmx ? std::max(vector_int8_tflops, amx_int8_tflops / 2)
                              : vector_int8_tflops;
    }
    if (dtype == DType::kInt8) return isa == Isa::kAmx ? amx_int8_tflops : vector_int8_tflops;
    if (isa == Isa::kAvx512Bf16 && dtype == DType::kBf16) return avx512_bf16_tflops;
    return isa == Isa::kAmx ? amx_bf16_tflops : fma_f32_tflops;
  }
};

// Measures the limits in bursts of about 10 ms. The limits of a shared machine change within
// seconds, so a measurement has bursts right beside it. The operands are random numbers, because
// zeros run faster than any real product. Holds 512 MiB of memory, which the bursts of reading use.
class LimitMeter {
 public:
  // kUnsupported without AVX2. `team` outlives the meter.
  static Result<std::unique_ptr<LimitMeter>> Make(ThreadTeam* team);

  double AmxBf16Tflops();            // 0 without a matrix unit
  double Avx512Bf16Tflops();         // 0 without AVX512-BF16
  double AmxInt8Tflops();            // 0 without a matrix unit
  double VectorInt8Tflops(Isa isa);  // see MachineLimits
  double FmaTflops(Isa isa);         // see MachineLimits
  double ReadGbps();

  // Measures the limits that RooflineSeconds needs for weights of `dtype` on `isa`; the others are
  // 0.
  MachineLimits Now(Isa isa, DType dtype);

 private:
  explicit LimitMeter(ThreadTeam* team);

  template <typename Peak>
  double Tflops(const Peak& peak);

  ThreadTeam* const team_;
  AlignedBuffer operands_;
  AlignedBuffer memory_;
  std::vector<float> factors_;
  std::vector<uint64_t> sums_;  // a sum for each part of the memory
  size_t next_part_ = 0;
};

// The median of each figure.
MachineLimits MedianOf(const std::vector<MachineLimits>& limits);
MachineLimits MeanOf(const MachineLimits& a, const MachineLimits& b);

// The medians of `num_runs` bursts for each figure, with the figures in turn. FMAs on vectors use
// the instructions of the kernels on `isa`.
MachineLimits MeasureLimits(LimitMeter& meter, Isa isa, int num_runs);

// The least seconds that the limits allow for a product with weights of `dtype`: the time to
// compute, if its limit was measured, or the time to read the weights, whichever is longer.
double RooflineSeconds(const MachineLimits& limits, Isa isa, DType dtype, double flops,
                       double weight_bytes);

// Makes {"compute_tflops" (for products with weights of `dtype` on `isa`; null: not measured),
// "read_gbps"}.
nlohmann::ordered_json LimitsToJson(const MachineLimits& limits, Isa isa, DType dtype);

}  // namespace skein
