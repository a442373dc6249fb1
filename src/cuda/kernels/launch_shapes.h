#pragma once

// The shapes of launches that work row by row, and the choice of a kernel by type.

#include <cstddef>
#include <cstdint>

#include "base/ceil_div.h"
#include "base/check.h"
#include "base/dtype.h"
#include "cuda/kernels/launches.h"
#include "cuda/kernels/rows.h"

namespace skein::cuda {

// The blocks of a grid for so many items.
inline uint32_t NumBlocks(int64_t items, int64_t of_block) {
  return static_cast<uint32_t>(CeilDiv(items, of_block));
}

// 16 lanes for each row.
inline LaunchShape LanesShape(int64_t rows) {
  return {{NumBlocks(rows, kRowsPerBlock)}, kRowThreads, 0};
}
// A block for each row.
inline LaunchShape RowShape(int64_t rows, size_t shared_bytes = 0) {
  return {{static_cast<uint32_t>(rows)}, kRowThreads, static_cast<uint32_t>(shared_bytes)};
}

// The kernel for a type. `f32` is the kernel for f32, and the next id is that for bf16.
inline KernelId OfType(KernelId f32, DType dtype) {
  SKEIN_CHECK(dtype == DType::kF32 || dtype == DType::kBf16);
  return static_cast<KernelId>(static_cast<int>(f32) + (dtype == DType::kBf16 ? 1 : 0));
}

}  // namespace skein::cuda
