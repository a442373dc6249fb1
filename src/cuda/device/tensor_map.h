#pragma once

#include <cstdint>

namespace skein::cuda {

// A matrix in a device's memory, of which a kernel copies boxes to shared memory (dialect.h,
// CopyBox). It has three dimensions, the first of which is contiguous, and elements of 32 bits.
// A box that reaches beyond the matrix has zeros there. The rows of a box have 128 bytes, and their
// 16 bytes are exchanged as wgmma expects (PTX ISA, "Swizzling modes").
//
// This is how the host describes it. A GPU has a form of its own of the same size, which takes its
// place at the launch (Launch::first_map).
struct alignas(128) TensorMap {
  static constexpr int32_t kRowWords = 32;  // of a box

  const void* base = nullptr;
  int64_t sizes[3] = {};    // elements
  int64_t strides[2] = {};  // bytes from one row to the next, and from one matrix of rows
  int32_t rows = 0;         // of a box, at most 256
  int32_t matrices = 0;     // of a box
  uint8_t unused[72] = {};  // so that equal maps have equal bytes
};
static_assert(sizeof(TensorMap) == 128);

}  // namespace skein::cuda
