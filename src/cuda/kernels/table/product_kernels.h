#pragma once

#include <cstdint>
#include <type_traits>

#include "base/dtype.h"
#include "cuda/kernels/gemm_tiles.h"
#include "cuda/kernels/table/kernel_table.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

// The products of one type and size of tile, from their first id on.
template <typename T, TileSize kSize>
void AddProducts(KernelTable& table, KernelId first) {
  using enum GemmOutput;
  KernelFunction* functions = &At(table, first);
  functions[0] = GemmKernel<GemmTileOf<kSize, kStore>, T, kStore, float>;
  functions[1] = GemmKernel<GemmTileOf<kSize, kAdd>, T, kAdd, float>;
  if constexpr (std::is_same_v<T, int8_t>) {
    functions[2] = GemmKernel<GemmTileOf<kSize, kGated>, T, kGated, float>;
    functions[3] = GemmKernel<GemmTileOf<kSize, kGated>, T, kGated, Bf16>;
  } else {
    functions[2] = GemmKernel<GemmTileOf<kSize, kGated>, T, kGated, T>;
  }
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
