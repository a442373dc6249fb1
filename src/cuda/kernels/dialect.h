#pragma once

// The language of the kernels: CUDA C++, restricted to words that an emulator on the host has, too.
// nvcc compiles a kernel for GPUs, any other compiler compiles it for the Emulator. The words are
// threadIdx.x, blockIdx, gridDim, __syncthreads, __syncwarp, __shfl_sync, __shfl_xor_sync,
// __ballot_sync, __popc, __clz and the functions below. Blocks have one dimension; shared memory is
// one struct of plain values, accessed by SharedMemory<T>().
//
// A kernel may start while the kernel before it in the stream still runs (programmatic dependent
// launch). So every thread of every kernel calls, at its begin and once,
//
//   LetNextKernelStart()     the next kernel may start: its blocks wait in WaitForPreviousKernel
//   WaitForPreviousKernel()  the kernel before has ended, and its writes can be seen
//
// Before the wait a thread may only read memory that no kernel writes: weights, angles of the rope,
// and the integers of the pass, which the host copies before the pass's first kernel. It writes
// nothing. A thread that returns without the wait would let the next kernel run before the kernel
// before this one has ended. The emulator fails kernels with such threads. The fake device begins a
// block of each kernel before the kernel ahead of it has run, so that a read before the wait sees
// old values.
//
// Arithmetic is that of docs/numerics.md: no contraction (fmaf is explicit), denormals are flushed,
// divisions and roots are rounded correctly. The flags of nvcc ensure this (cmake in the root).
//
// A program may contain the kernels of both compilers; the namespace keeps their symbols apart.

#ifdef __CUDACC__

#include <cstdint>

#include "cuda/device/tensor_map.h"

#define SKEIN_KERNEL_SIDE on_device

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

template <typename T>
__device__ __forceinline__ T& SharedMemory() {
  extern __shared__ __align__(1024) unsigned char skein_shared_memory[];
  return *reinterpret_cast<T*>(skein_shared_memory);
}

__device__ __forceinline__ void LetNextKernelStart() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
#endif
}
__device__ __forceinline__ void WaitForPreviousKernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n" ::: "memory");
#endif
}

// Barriers in shared memory for some threads of a block (PTX ISA, "mbarrier"), in code for sm_90a.
// A phase of a barrier ends when all of its arrivals have come; then the next one
// begins. Phases have the parities 0, 1, 0, ...
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
inline constexpr bool kHasPhases = true;
#else
inline constexpr bool kHasPhases = false;
#endif
// To be called by one thread, before a barrier of the block.
__device__ __forceinline__ void InitBarrier(uint64_t* barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(barrier))),
               "r"(arrivals)
               : "memory");
}
// Behind the last InitBarrier, for barriers that boxes arrive at.
__device__ __forceinline__ void ShowBarriersToCopies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
#endif
}
__device__ __forceinline__ void Arrive(uint64_t* barrier) {
  asm volatile(
      "{\n"
      ".reg .b64 state;\n"
      "mbarrier.arrive.shared::cta.b64 state, [%0];\n"
      "}\n" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(barrier)))
      : "memory");
}
// Arrives, and lets the phase last until boxes of so many bytes are there, too.
__device__ __forceinline__ void ArriveWithBytes(uint64_t* barrier, uint32_t bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .b64 state;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n"
      "}\n" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(barrier))),
      "r"(bytes)
      : "memory");
#endif
}
// Begins the copy of the box whose first element is (x, y, z) to shared memory, 1,024-byte aligned.
// Its bytes count for the barrier. `map`: of the kernel's parameter.
__device__ __forceinline__ void CopyBox(void* shared, const TensorMap& map, int32_t x, int32_t y,
                                        int32_t z, uint64_t* barrier) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];\n" ::"r"(
          static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
      "l"(&map), "r"(x), "r"(y), "r"(z),
      "r"(static_cast<uint32_t>(__cvta_generic_to_shared(barrier)))
      : "memory");
#endif
}
// Waits until the phase with this parity has ended. In the first phase a wait for the parity 1 ends
// at once.
__device__ __forceinline__ void WaitForPhase(uint64_t* barrier, uint32_t parity) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .pred ended;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
      "@ended bra over;\n"
      "bra again;\n"
      "over:\n"
      "}\n" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(barrier))),
      "r"(parity)
      : "memory");
#endif
}

// Ends the grid with an error.
__device__ __forceinline__ void Trap() { asm volatile("trap;\n"); }

// Moves registers between the four warps that call it and the others of the block: to kRegisters
// for each thread. A warp that takes waits until they are given. On sm_90a; elsewhere nothing
// happens.
template <int kRegisters>
__device__ __forceinline__ void GiveRegisters() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
#endif
}
template <int kRegisters>
__device__ __forceinline__ void TakeRegisters() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
#endif
}

// Adds four values to four of memory, at a multiple of 16 bytes, in code for sm_90. Each sum is
// rounded as others are, and denormals are flushed (PTX ISA, "red").
__device__ __forceinline__ void AddToMemory(float* global, const float (&values)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"l"(global),
               "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3])
               : "memory");
#endif
}

// kOffset and kFromOffset: bytes behind the addresses, as a part of the instruction.
template <int kOffset = 0, int kFromOffset = kOffset>
__device__ __forceinline__ void CopyAsync16(void* shared, const void* global, bool exists) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const int bytes = exists ? 16 : 0;  // the rest of the 16 bytes become zeros
  asm volatile("cp.async.cg.shared.global [%0 + %3], [%1 + %4], 16, %2;\n" ::"r"(address),
               "l"(global), "r"(bytes), "n"(kOffset), "n"(kFromOffset)
               : "memory");
}

// An address in shared memory behind which a thread copies more than once. It is computed once: the
// assembly keeps the compiler from computing it again for each copy.
struct SharedAddress {
  __device__ __forceinline__ explicit SharedAddress(const void* shared)
      : address(static_cast<uint32_t>(__cvta_generic_to_shared(shared))) {
    asm volatile("" : "+r"(address));
  }
  uint32_t address;
};
// Copies 16 bytes to the address `offset` bytes behind `to`.
__device__ __forceinline__ void CopyAsync16(const SharedAddress& to, int offset,
                                            const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to.address + offset), "l"(global)
               : "memory");
}
__device__ __forceinline__ void CommitCopies() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

// 1 / x, to one unit in the last place.
__device__ __forceinline__ float EstimateReciprocal(float x) {
  float estimate;
  asm("rcp.approx.ftz.f32 %0, %1;\n" : "=f"(estimate) : "f"(x));
  return estimate;
}

// The larger one; NaN if one of them is NaN.
__device__ __forceinline__ float MaxOrNan(float a, float b) {
  float max;
  asm("max.ftz.NaN.f32 %0, %1, %2;\n" : "=f"(max) : "f"(a), "f"(b));
  return max;
}

// Rounds both to bf16; `low` becomes the lower half of the word.
__device__ __forceinline__ uint32_t RoundPairToBf16(float low, float high) {
  uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

__device__ __forceinline__ void MmaBf16(float (&c)[4], const uint32_t (&a)[4],
                                        const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void MmaInt8(int32_t (&c)[4], const uint32_t (&a)[4],
                                        const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE

#else
#include "cuda/emulator/device_emulator.h"  // IWYU pragma: export
#endif
