#pragma once

// The matrix unit's instructions in our own assembly: the compiler's intrinsics declare too little
// (g++ 12: 8 of the 64 bytes of a configuration, and no memory clobber on loads). Each is volatile,
// so they keep their order among themselves; tiles are not known to the compiler, so no function
// that uses them may call one that does. A thread holds tile state from LoadTileConfig to
// ReleaseTiles; release it before leaving the kernel, or every context switch saves 8 KB.

#include <cstdint>

namespace skein::amx {

// The layout that LDTILECFG reads (palette 1: eight tiles of up to 16 rows of 64 bytes).
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// Zeroes all tiles, too.
inline void LoadTileConfig(const TileConfig& config) {
  asm volatile("ldtilecfg %0" : : "m"(config));
}

inline void ReleaseTiles() { asm volatile("tilerelease"); }

template <int kTile>
inline void ZeroTile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}

// Row r of the tile from base + r * stride_bytes.
template <int kTile>
inline void LoadTile(const void* base, int64_t stride_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
               :
               : "r"(base), "r"(stride_bytes), "i"(kTile)
               : "memory");
}

template <int kTile>
inline void StoreTile(void* base, int64_t stride_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
               :
               : "r"(base), "r"(stride_bytes), "i"(kTile)
               : "memory");
}

// c[row][column] += sum over pairs of a[row][pair] · b[pair][column], bf16 pairs, f32 sums:
// (FMA chain over the pairs' first elements + FMA chain over their second), added to c.
template <int kC, int kA, int kB>
inline void DotTiles() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
}

// c[row][column] += sum over quads of a[row][quad] · b[quad][column], int8 quads, int32 sums.
template <int kC, int kA, int kB>
inline void DotInt8Tiles() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
}

// The one or the other.
template <bool kInt8, int kC, int kA, int kB>
inline void Dot() {
  if constexpr (kInt8) {
    DotInt8Tiles<kC, kA, kB>();
  } else {
    DotTiles<kC, kA, kB>();
  }
}

// With distance to the tile instruction that follows: two others behind a load, eight behind a
// product. While the machine runs its matrix unit at a fraction of its rate (seen on virtual
// machines; a shared core or a limit of power), tile instructions that follow one another directly
// take up to twice as long; at the full rate the distance costs nothing on operands in the cache.
template <int kTile>
inline void LoadTileSpaced(const void* base, int64_t stride_bytes) {
  LoadTile<kTile>(base, stride_bytes);
  asm volatile("nop\n\tnop");
}

template <bool kInt8, int kC, int kA, int kB>
inline void DotSpaced() {
  Dot<kInt8, kC, kA, kB>();
  asm volatile("nop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop");
}

}  // namespace skein::amx
