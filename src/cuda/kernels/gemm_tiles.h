#pragma once

// The tiles of products. Rows are rows of a; columns are columns of w, of which a gated product has
// two for each output.

#include "cuda/kernels/gemm.h"
#include "cuda/kernels/gemm_persistent.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

template <TileSize kSize, bool kGated>
struct TileOf;
// For decodes, which stream the weights: many small blocks, with as many copies under way as memory
// needs.
template <bool kGated>
struct TileOf<TileSize::kFew8, kGated> {
  using Tile = GemmTile<1, kGated ? 2 : 1, 8, kGated ? 8 : 10>;
};
template <bool kGated>
struct TileOf<TileSize::kFew16, kGated> {
  using Tile = GemmTile<4, 1, 16, 8, 2>;
};
// For short prompts and narrow matrices, which have few outputs for each multiprocessor.
template <bool kGated>
struct TileOf<TileSize::kFew32, kGated> {
  using Tile = GemmTile<4, 1, 32, 6>;
};
template <bool kGated>
struct TileOf<TileSize::kMiddle, kGated> {
  using Tile = GemmTile<4, 1, 64, kGated ? 4 : 6>;
};
// For matrices so narrow that a multiprocessor has one block: more copies under way, and longer
// turns.
template <bool kGated>
struct TileOf<TileSize::kDeep32, kGated> {
  using Tile = GemmTile<4, 1, 32, 16, 4>;
};
template <bool kGated>
struct TileOf<TileSize::kDeep64, kGated> {
  using Tile = GemmTile<4, 1, 64, 12, 3>;
};
// For prompts.
template <bool kGated>
struct TileOf<TileSize::kLarge, kGated> {
  using Tile = GemmTile<8, 1, 128, 6>;
};
template <bool kGated>
struct TileOf<TileSize::kHuge, kGated> {
  using Tile = GemmTile<8, 1, 256, 4>;
};

// The same for PersistentGemmKernel.
template <bool kGated>
struct TileOf<TileSize::kPersistentLarge, kGated> : TileOf<TileSize::kLarge, kGated> {};
template <bool kGated>
struct TileOf<TileSize::kPersistentHuge, kGated> : TileOf<TileSize::kHuge, kGated> {};

template <TileSize kSize, GemmOutput kOutput>
using GemmTileOf = typename TileOf<kSize, kOutput == GemmOutput::kGated>::Tile;

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
