// Dense products of bf16.

#include "cuda/kernels/gemm_persistent.h"
#include "cuda/kernels/table/kernel_table.h"
#include "cuda/kernels/table/product_kernels.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {
namespace {

// Those of bf16 with one block for each multiprocessor.
template <TileSize kSize>
void AddPersistent(KernelTable& table, KernelId first) {
  using enum GemmOutput;
  KernelFunction* functions = &At(table, first);
  functions[0] = PersistentGemmKernel<GemmTileOf<kSize, kStore>, kStore>;
  functions[1] = PersistentGemmKernel<GemmTileOf<kSize, kAdd>, kAdd>;
  functions[2] = PersistentGemmKernel<GemmTileOf<kSize, kGated>, kGated>;
}

}  // namespace

void AddBf16Products(KernelTable& table) {
  using enum KernelId;
  AddProducts<Bf16, TileSize::kFew8>(table, kBf16Few8Store);
  AddProducts<Bf16, TileSize::kFew16>(table, kBf16Few16Store);
  AddProducts<Bf16, TileSize::kFew32>(table, kBf16Few32Store);
  AddProducts<Bf16, TileSize::kDeep32>(table, kBf16Deep32Store);
  AddProducts<Bf16, TileSize::kMiddle>(table, kBf16MiddleStore);
  AddProducts<Bf16, TileSize::kDeep64>(table, kBf16Deep64Store);
  AddProducts<Bf16, TileSize::kLarge>(table, kBf16LargeStore);
  AddProducts<Bf16, TileSize::kHuge>(table, kBf16HugeStore);
  AddPersistent<TileSize::kPersistentLarge>(table, kBf16PersistentLargeStore);
  AddPersistent<TileSize::kPersistentHuge>(table, kBf16PersistentHugeStore);
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
