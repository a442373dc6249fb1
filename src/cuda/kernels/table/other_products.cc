// Dense products of f32 and int8, and the grouped ones of all three types.

#include "cuda/kernels/table/kernel_table.h"
#include "cuda/kernels/table/product_kernels.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {
namespace {

template <typename T, TileSize kSize>
void AddGrouped(KernelTable& table, KernelId first) {
  using enum GemmOutput;
  KernelFunction* functions = &At(table, first);
  functions[0] = GroupedGemmKernel<GemmTileOf<kSize, kStore>, T, kStore, float>;
  if constexpr (std::is_same_v<T, int8_t>) {
    functions[1] = GroupedGemmKernel<GemmTileOf<kSize, kGated>, T, kGated, float>;
    functions[2] = GroupedGemmKernel<GemmTileOf<kSize, kGated>, T, kGated, Bf16>;
  } else {
    functions[1] = GroupedGemmKernel<GemmTileOf<kSize, kGated>, T, kGated, T>;
  }
}

}  // namespace

void AddOtherProducts(KernelTable& table) {
  using enum KernelId;
  AddProducts<float, TileSize::kFew16>(table, kF32Few16Store);
  AddProducts<float, TileSize::kMiddle>(table, kF32MiddleStore);
  AddProducts<int8_t, TileSize::kFew16>(table, kInt8Few16Store);
  AddProducts<int8_t, TileSize::kMiddle>(table, kInt8MiddleStore);
  AddProducts<int8_t, TileSize::kLarge>(table, kInt8LargeStore);
  AddGrouped<float, TileSize::kFew16>(table, kGroupedF32Few16Store);
  AddGrouped<float, TileSize::kMiddle>(table, kGroupedF32MiddleStore);
  AddGrouped<Bf16, TileSize::kFew16>(table, kGroupedBf16Few16Store);
  AddGrouped<Bf16, TileSize::kMiddle>(table, kGroupedBf16MiddleStore);
  AddGrouped<int8_t, TileSize::kFew16>(table, kGroupedInt8Few16Store);
  AddGrouped<int8_t, TileSize::kMiddle>(table, kGroupedInt8MiddleStore);
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
