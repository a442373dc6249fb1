#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace skein {

// Loops that only compute or only read, on one thread, for MeasureLimits. Each returns the number
// of its operations, or a value that depends on everything that it read.

inline constexpr size_t kPeakOperandBytes = 16 << 10;  // of random bf16, 64-byte aligned

// Computes `steps` times four products of 16x32 by 32x16 bf16 on the matrix unit. Operands are
// loaded from the first-level cache. Returns the floating-point operations. REQUIRES: AMX.
double RunAmxPeak(const std::byte* operands, int64_t steps);
// The same for int8; a tile holds twice as many int8 elements.
double RunAmxInt8Peak(const std::byte* operands, int64_t steps);

// Computes `steps` times 24 independent vdpbf16ps. Returns the floating-point operations. result:
// [16]. REQUIRES: AVX512-BF16.
double RunAvx512Bf16Peak(const std::byte* operands, int64_t steps, float* result);

// Computes `steps` times a number of independent vector dot products of int8; each adds four
// products to an int32. They are those of `isa` and this machine: 24 of AVX-512's VNNI, 12 of
// AVX-VNNI, or 10 of AVX2. Returns the multiplications and additions. result: [16]. REQUIRES: AVX2.
double RunInt8Peak(Isa isa, const std::byte* operands, int64_t steps, int32_t* result);

// Computes `steps` times a number of independent FMAs of f32, with operands [256] and result [16].
// The number is 16 with AVX-512's vectors, or 12 with AVX2's, if `isa` or this machine has no wider
// ones. Returns the floating-point operations. REQUIRES: AVX2.
double RunFmaPeak(Isa isa, const float* operands, int64_t steps, float* result);

// Reads `bytes` bytes, a multiple of 512, in lines of 64 bytes.
uint64_t ReadAll(const std::byte* data, size_t bytes);

}  // namespace skein
