#pragma once

// Products that four warps, 64 columns of w, compute in the background (PTX ISA, "wgmma"): bf16 on
// GPUs with sm_90a. A warp has the words of its 16 columns in registers, in the places that
// mma.m16n8k16 has, too; the rows are in shared memory (SharedRows). Elsewhere the words below do
// nothing, and kHasWgmma is false.
//
// Hardware of this kind gave the bits of mma.m16n8k16 (docs/results/gpu.md).

#include <cstdint>

#include "cuda/kernels/dialect.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

// The registers with which each thread of a block of 384 begins, where some of its warps give
// registers to others. tools/ptxas_table.py checks it: with fewer, a warp would wait forever.
inline constexpr int kBeginRegisters = 168;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

inline constexpr bool kHasWgmma = true;

// Lets background products see what this thread's stores and finished copies wrote to shared
// memory.
__device__ __forceinline__ void ShowWritesToProducts() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}
// Before the first product behind other writes to registers that products use.
__device__ __forceinline__ void BeginProducts() {
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}
// Ends a group of products.
__device__ __forceinline__ void EndProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}
// Waits until at most kPending groups still run.
template <int kPending>
__device__ __forceinline__ void WaitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kPending) : "memory");
}
// Ensures that these values are computed here, and not behind a later wait, to where the compiler
// would move them.
template <int kTiles>
__device__ __forceinline__ void ComputeNow(float (&values)[kTiles][4]) {
#pragma unroll
  for (int i = 0; i < 4 * kTiles; ++i) asm volatile("" : "+f"(values[i / 4][i % 4]));
}

// The place of the rows: rows of 128 bytes, eight of them 1,024 bytes behind the eight before.
__device__ __forceinline__ uint64_t RowsDescriptor(const uint32_t* rows) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62, kStride = uint64_t{1024 / 16} << 32;
  const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(rows));
  return kSwizzle128 | kStride | uint64_t{1} << 16 | address >> 4;
}
// The place `bytes` behind another one, a multiple of 16.
__device__ __forceinline__ uint64_t RowsBehind(uint64_t rows, int bytes) {
  return rows + static_cast<uint32_t>(bytes) / 16;
}

// sums[t]: 16 columns of the warp and rows 8 t ... 8 t + 7, as mma.m16n8k16 has them. `rows`: the
// place of the first of the 8 words in the first row.
#define SKEIN_TILE(t) "+f"(sums[t][0]), "+f"(sums[t][1]), "+f"(sums[t][2]), "+f"(sums[t][3])
__device__ __forceinline__ void MultiplyInBackground(float (&sums)[2][4], const uint32_t (&w)[4],
                                                     uint64_t rows) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7}, "
      "{%8, %9, %10, %11}, %12, 1, 1, 1, 0;\n"
      : SKEIN_TILE(0), SKEIN_TILE(1)
      : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "l"(rows));
}
__device__ __forceinline__ void MultiplyInBackground(float (&sums)[4][4], const uint32_t (&w)[4],
                                                     uint64_t rows) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
      "{%16, %17, %18, %19}, %20, 1, 1, 1, 0;\n"
      : SKEIN_TILE(0), SKEIN_TILE(1), SKEIN_TILE(2), SKEIN_TILE(3)
      : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "l"(rows));
}
__device__ __forceinline__ void MultiplyInBackground(float (&sums)[8][4], const uint32_t (&w)[4],
                                                     uint64_t rows) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, 1, 1, 1, 0;\n"
      : SKEIN_TILE(0), SKEIN_TILE(1), SKEIN_TILE(2), SKEIN_TILE(3), SKEIN_TILE(4), SKEIN_TILE(5),
        SKEIN_TILE(6), SKEIN_TILE(7)
      : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "l"(rows));
}
__device__ __forceinline__ void MultiplyInBackground(float (&sums)[16][4], const uint32_t (&w)[4],
                                                     uint64_t rows) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, 1, 1, 1, 0;\n"
      : SKEIN_TILE(0), SKEIN_TILE(1), SKEIN_TILE(2), SKEIN_TILE(3), SKEIN_TILE(4), SKEIN_TILE(5),
        SKEIN_TILE(6), SKEIN_TILE(7), SKEIN_TILE(8), SKEIN_TILE(9), SKEIN_TILE(10), SKEIN_TILE(11),
        SKEIN_TILE(12), SKEIN_TILE(13), SKEIN_TILE(14), SKEIN_TILE(15)
      : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "l"(rows));
}
__device__ __forceinline__ void MultiplyInBackground(float (&sums)[32][4], const uint32_t (&w)[4],
                                                     uint64_t rows) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "
      "%127}, "
      "{%128, %129, %130, %131}, %132, 1, 1, 1, 0;\n"
      : SKEIN_TILE(0), SKEIN_TILE(1), SKEIN_TILE(2), SKEIN_TILE(3), SKEIN_TILE(4), SKEIN_TILE(5),
        SKEIN_TILE(6), SKEIN_TILE(7), SKEIN_TILE(8), SKEIN_TILE(9), SKEIN_TILE(10), SKEIN_TILE(11),
        SKEIN_TILE(12), SKEIN_TILE(13), SKEIN_TILE(14), SKEIN_TILE(15), SKEIN_TILE(16),
        SKEIN_TILE(17), SKEIN_TILE(18), SKEIN_TILE(19), SKEIN_TILE(20), SKEIN_TILE(21),
        SKEIN_TILE(22), SKEIN_TILE(23), SKEIN_TILE(24), SKEIN_TILE(25), SKEIN_TILE(26),
        SKEIN_TILE(27), SKEIN_TILE(28), SKEIN_TILE(29), SKEIN_TILE(30), SKEIN_TILE(31)
      : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "l"(rows));
}
#undef SKEIN_TILE
template <int kTiles>
__device__ __forceinline__ void MultiplyInBackground(float (&sums)[kTiles][4],
                                                     const uint32_t (&w)[4], const uint32_t* rows) {
  MultiplyInBackground(sums, w, RowsDescriptor(rows));
}

#else

inline constexpr bool kHasWgmma = false;
__device__ __forceinline__ void ShowWritesToProducts() {}
__device__ __forceinline__ void BeginProducts() {}
__device__ __forceinline__ void EndProducts() {}
template <int kPending>
__device__ __forceinline__ void WaitForProducts() {}
template <int kTiles>
__device__ __forceinline__ void ComputeNow(float (&)[kTiles][4]) {}
__device__ __forceinline__ uint64_t RowsDescriptor(const uint32_t*) { return 0; }
__device__ __forceinline__ uint64_t RowsBehind(uint64_t rows, int) { return rows; }
template <int kTiles, typename Rows>
__device__ __forceinline__ void MultiplyInBackground(float (&)[kTiles][4], const uint32_t (&)[4],
                                                     Rows) {}

#endif

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
