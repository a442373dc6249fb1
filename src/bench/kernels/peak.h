#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace skein {

// Loops that do nothing but compute or read, on one thread, for MeasureLimits. Each returns the
// operations done or a value that depends on all that it read.

inline constexpr size_t kPeakOperandBytes = 16 << 10;  // of random bf16, 64-byte aligned

// `steps` times four products of 16x32 by 32x16 bf16 on the matrix unit, operands loaded from the
// first-level cache. Returns the floating-point operations. REQUIRES: AMX.
double RunAmxPeak(const std::byte* operands, int64_t steps);
// The same with int8, of which a tile holds twice as many.
double RunAmxInt8Peak(const std::byte* operands, int64_t steps);

// `steps` times 24 independent vdpbf16ps. Returns the floating-point operations. result: [16].
// REQUIRES: AVX512-BF16.
double RunAvx512Bf16Peak(const std::byte* operands, int64_t steps, float* result);

// `steps` times independent dot products of int8, of which each takes four products and their sum
// to an int32: 24 vectors by VNNI, or 12 by AVX2 if `isa` is kAvx2 or there is no VNNI. Returns the
// multiplications and additions. result: [16]. REQUIRES: AVX2.
double RunInt8Peak(Isa isa, const std::byte* operands, int64_t steps, int32_t* result);

// `steps` times independent FMAs of f32, operands [256], result [16]: 12 with AVX2's vectors if
// `isa` is kAvx2, else 16 with the widest here. Returns the floating-point operations.
// REQUIRES: AVX2.
double RunFmaPeak(Isa isa, const float* operands, int64_t steps, float* result);

// Reads `bytes`, a multiple of 512, by 64-byte lines.
uint64_t ReadAll(const std::byte* data, size_t bytes);

}  // namespace skein
