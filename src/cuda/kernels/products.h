#pragma once

// Products of 16 rows and 8 columns over 8 words of 32 bits, computed by one warp: on the tensor
// cores for bf16 and int8, by fused operations for f32. A lane has the words quad and quad + 4 of
// the rows group and group + 8, and of the column group, where group = lane / 4 and quad = lane %
// 4. Its sums are
//
//   c[0], c[1]: row group, columns 2 quad and 2 quad + 1;   c[2], c[3]: the same of row group + 8
//
// A sum goes over k in order, in one accumulator. (Layouts: PTX ISA, "Matrix fragments for
// mma.m16n8k16", "mma.m16n8k32".)

#include <cstdint>
#include <type_traits>

#include "base/dtype.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/math.h"
#include "cuda/kernels/wgmma.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline constexpr int kMmaWords = 8;

struct Lane {
  __device__ __forceinline__ Lane()
      : index(static_cast<int>(threadIdx.x % 32)), group(index / 4), quad(index % 4) {}
  int index, group, quad;
};

template <typename T>
struct Product;

template <>
struct Product<Bf16> {
  using Sum = float;
  static __device__ __forceinline__ void Add(float (&c)[4], const uint32_t (&a)[4],
                                             const uint32_t (&b)[2]) {
    MmaBf16(c, a, b);
  }
};

template <>
struct Product<int8_t> {
  using Sum = int32_t;
  static __device__ __forceinline__ void Add(int32_t (&c)[4], const uint32_t (&a)[4],
                                             const uint32_t (&b)[2]) {
    MmaInt8(c, a, b);
  }
};

// For f32, there is no such instruction: each lane gets the words that it needs from the lanes that
// hold them, and adds the products itself.
template <>
struct Product<float> {
  using Sum = float;
  static __device__ __forceinline__ void Add(float (&c)[4], const uint32_t (&a)[4],
                                             const uint32_t (&b)[2]) {
    const Lane lane;
#pragma unroll
    for (int word = 0; word < kMmaWords; ++word) {
      const int high = word / 4, of_row = lane.group * 4 + word % 4;
      const int of_column = lane.quad * 8 + word % 4;
      const float row0 = __uint_as_float(__shfl_sync(kAllLanes, a[2 * high], of_row));
      const float row1 = __uint_as_float(__shfl_sync(kAllLanes, a[2 * high + 1], of_row));
      const float column0 = __uint_as_float(__shfl_sync(kAllLanes, b[high], of_column));
      const float column1 = __uint_as_float(__shfl_sync(kAllLanes, b[high], of_column + 4));
      c[0] = fmaf(row0, column0, c[0]);
      c[1] = fmaf(row0, column1, c[1]);
      c[2] = fmaf(row1, column0, c[2]);
      c[3] = fmaf(row1, column1, c[3]);
    }
  }
};

// 32 words of each of kRows rows in shared memory. Chunks of 16 bytes are exchanged within a row,
// so that a warp reads from all banks, and in the way that wgmma expects (PTX ISA, "Swizzling
// modes", 128 bytes).
template <int kRows>
struct SharedRows {
  __device__ __forceinline__ uint32_t* Chunk(int row, int chunk) {
    return &words[row][(chunk ^ (row & 7)) * 4];
  }
  // The lane's words of rows 8 tile ... 8 tile + 7, as an operand of a product over the 8 words
  // from `word` on.
  __device__ __forceinline__ void Read(int tile, int word, const Lane& lane,
                                       uint32_t (&b)[2]) const {
    const auto& row = words[tile * 8 + lane.group];
    b[0] = row[((word / 4) ^ lane.group) * 4 + lane.quad];
    b[1] = row[((word / 4 + 1) ^ lane.group) * 4 + lane.quad];
  }

  uint32_t words[kRows][32];
};

template <typename T>
__device__ __forceinline__ constexpr bool MultipliesInBackground() {
  return kHasWgmma && std::is_same_v<T, Bf16>;
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
