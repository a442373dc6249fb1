#pragma once

// The words of CUDA C++ that the kernels use, for a compiler of the host: each thread of a launch
// is a fiber of the Emulator. Only cuda/kernels/dialect.h includes this file, at the top of a
// source.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/dtype.h"
#include "cuda/emulator/emulator.h"
#include "cuda/emulator/mma_words.h"

#define SKEIN_KERNEL_SIDE on_host
#define __global__
#define __device__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define threadIdx (::skein::cuda::ThreadIndex())
#define blockIdx (::skein::cuda::Emulator::Current().block_index())
#define gridDim (::skein::cuda::Emulator::Current().shape().grid)

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline Dim3 ThreadIndex() { return {Emulator::Current().thread_index(), 0, 0}; }

inline void __syncthreads() { Emulator::Current().WaitForBlock(); }
inline void __syncwarp() {
  const std::byte nothing{};
  Emulator::Current().MeetWarp("__syncwarp", &nothing, sizeof(nothing));
}

// Returns the value that the lane `lane` gave.
template <typename T>
T __shfl_sync(uint32_t mask, T value, int lane) {
  SKEIN_CHECK(mask == 0xffffffffu);
  const std::byte* messages = Emulator::Current().MeetWarp("__shfl_sync", &value, sizeof(T));
  std::memcpy(&value, messages + (lane & 31) * Emulator::kMaxMessageBytes, sizeof(T));
  return value;
}

template <typename T>
T __shfl_xor_sync(uint32_t mask, T value, int bits) {
  SKEIN_CHECK(mask == 0xffffffffu);
  const int lane = static_cast<int>(ThreadIndex().x) & 31;
  const std::byte* messages = Emulator::Current().MeetWarp("__shfl_xor_sync", &value, sizeof(T));
  std::memcpy(&value, messages + (lane ^ bits) * Emulator::kMaxMessageBytes, sizeof(T));
  return value;
}

// A bit for each lane: whether its `predicate` holds.
inline uint32_t __ballot_sync(uint32_t mask, bool predicate) {
  SKEIN_CHECK(mask == 0xffffffffu);
  const std::byte* messages = Emulator::Current().MeetWarp("__ballot_sync", &predicate, 1);
  uint32_t ballot = 0;
  for (int lane = 0; lane < 32; ++lane) {
    const bool holds = messages[lane * Emulator::kMaxMessageBytes] != std::byte{0};
    ballot |= (holds ? 1u : 0u) << lane;
  }
  return ballot;
}

inline int __popc(uint32_t bits) { return std::popcount(bits); }
inline int __clz(int bits) { return std::countl_zero(static_cast<uint32_t>(bits)); }

// The shared memory of the block, as the type that the kernel uses for it.
template <typename T>
T& SharedMemory() {
  return *reinterpret_cast<T*>(Emulator::Current().shared_memory(sizeof(T)));
}

// The emulator runs launch after launch, but counts the waits.
inline void LetNextKernelStart() {}
inline void WaitForPreviousKernel() { Emulator::Current().WaitForPreviousKernel(); }

// mbarrier (dialect.h).
inline constexpr bool kHasPhases = true;
inline void InitBarrier(uint64_t* barrier, uint32_t arrivals) {
  Emulator::Current().InitBarrier(barrier, arrivals);
}
inline void ShowBarriersToCopies() { Emulator::Current().ShowBarriersToCopies(); }
inline void Arrive(uint64_t* barrier) { Emulator::Current().Arrive(barrier); }
inline void ArriveWithBytes(uint64_t* barrier, uint32_t bytes) {
  Emulator::Current().ArriveWithBytes(barrier, bytes);
}
inline void CopyBox(void* shared, const TensorMap& map, int32_t x, int32_t y, int32_t z,
                    uint64_t* barrier) {
  Emulator::Current().CopyBox(shared, map, x, y, z, barrier);
}
inline void WaitForPhase(uint64_t* barrier, uint32_t parity) {
  Emulator::Current().WaitForPhase(barrier, parity);
}

inline void Trap() { SKEIN_CHECK(false); }

// setmaxnreg: fibers have no registers of their own.
template <int kRegisters>
void GiveRegisters() {}
template <int kRegisters>
void TakeRegisters() {}

inline void AddToMemory(float* global, const float (&values)[4]) {
  SKEIN_CHECK(reinterpret_cast<uintptr_t>(global) % 16 == 0);
  for (int i = 0; i < 4; ++i) global[i] += values[i];
}

// cp.async.cg.shared.global of 16 bytes, or of zeros if `exists` is false, kOffset and kFromOffset
// bytes behind the addresses, which are multiples of 16.
template <int kOffset = 0, int kFromOffset = kOffset>
void CopyAsync16(void* shared, const void* global, bool exists) {
  const void* from = static_cast<const std::byte*>(global) + kFromOffset;
  Emulator::Current().Copy16(static_cast<std::byte*>(shared) + kOffset, exists ? from : nullptr);
}
struct SharedAddress {
  explicit SharedAddress(void* shared) : address(static_cast<std::byte*>(shared)) {}
  std::byte* address;
};
inline void CopyAsync16(const SharedAddress& to, int offset, const void* global) {
  Emulator::Current().Copy16(to.address + offset, global);
}
inline void CommitCopies() { Emulator::Current().CommitCopies(); }
// Waits until at most kPending committed groups of this thread are still being copied.
template <int kPending>
void WaitForCopies() {
  Emulator::Current().WaitForCopies(kPending);
}

// The operands of mma.m16n8: 16 rows of a and 8 columns of b, each of 8 words of 32 bits. A lane
// has the words quad and quad + 4 of the rows group and group + 8, and of the column group, where
// group = lane / 4 and quad = lane % 4. Its sums belong to columns 2 quad and 2 quad + 1 of both
// rows: this reads their words from all lanes.
inline MmaLaneWords ReadMmaWords(const char* operation, const uint32_t (&a)[4],
                                 const uint32_t (&b)[2]) {
  const uint32_t message[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  const std::byte* messages = Emulator::Current().MeetWarp(operation, message, sizeof(message));
  const auto read = [messages](int lane, int index) {
    uint32_t word;
    std::memcpy(&word, messages + lane * Emulator::kMaxMessageBytes + index * 4, 4);
    return word;
  };
  const int lane = static_cast<int>(ThreadIndex().x) & 31, group = lane / 4, quad = lane % 4;
  MmaLaneWords words;
  for (int word = 0; word < 8; ++word) {
    for (int i = 0; i < 2; ++i) {
      words.rows[i][word] = read(group * 4 + word % 4, word / 4 * 2 + i);
      words.columns[i][word] = read((quad * 2 + i) * 4 + word % 4, 4 + word / 4);
    }
  }
  return words;
}

inline float __uint_as_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
inline uint32_t __float_as_uint(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

// rcp.approx.ftz.f32. The hardware's last bit is not specified.
inline float EstimateReciprocal(float x) { return 1.0f / x; }

// max.ftz.NaN.f32.
inline float MaxOrNan(float a, float b) { return a != a || a > b ? a : b; }

// cvt.rn.bf16x2.f32.
inline uint32_t RoundPairToBf16(float low, float high) {
  return ToBf16(low).bits | static_cast<uint32_t>(ToBf16(high).bits) << 16;
}

// mma.m16n8k16 for bf16: a word is two terms. The hardware specifies neither the order of its 16
// terms nor the rounding between them. Here they are a chain of fused operations in the order of k.
inline void MmaBf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  AddBf16Products(ReadMmaWords("mma.bf16", a, b), c);
}

// mma.m16n8k32 for int8: a word is four terms, and sums are exact.
inline void MmaInt8(int32_t (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  const MmaLaneWords words = ReadMmaWords("mma.s8", a, b);
  for (int i = 0; i < 4; ++i) {
    for (int word = 0; word < 8; ++word) {
      const uint32_t x = words.rows[i / 2][word], y = words.columns[i % 2][word];
      for (int shift = 0; shift < 32; shift += 8) {
        c[i] += static_cast<int8_t>(x >> shift) * static_cast<int8_t>(y >> shift);
      }
    }
  }
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
