#pragma once

// The instructions of the matrix unit in our own assembly. The compiler's intrinsics declare too
// little: g++ 12 declares 8 of the 64 bytes of a configuration, and no memory clobber on loads.
// Each statement is volatile, which keeps the statements in order. The compiler does not know of
// tiles, so a function that uses tiles must call no other function that uses them. A thread holds
// tile state from LoadTileConfig to ReleaseTiles. A kernel releases the state before it returns;
// otherwise every context switch would save 8 KB.

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

// Loads the configuration, which also zeroes all tiles.
inline void LoadTileConfig(const TileConfig& config) {
  asm volatile("ldtilecfg %0" : : "m"(config));
}

inline void ReleaseTiles() { asm volatile("tilerelease"); }

template <int kTile>
inline void ZeroTile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}

// Loads row r of the tile from base + r * stride_bytes.
template <int kTile>
inline void LoadTile(const void* base, int64_t stride_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
               :
               : "r"(base), "r"(stride_bytes), "i"(kTile)
               : "memory");
}

// LoadTile for rows that are not loaded again soon: they do not displace the operands that stay in
// the first-level cache.
template <int kTile>
inline void LoadTileOnce(const void* base, int64_t stride_bytes) {
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2"
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

// c[row][column] += sum over pairs of a[row][pair] · b[pair][column], for bf16 pairs and f32 sums.
// Two FMA chains, one over the pairs' first elements and one over their second ones, are added
// together and then to c.
template <int kC, int kA, int kB>
inline void DotTiles() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
}

// c[row][column] += sum over quads of a[row][quad] · b[quad][column], int8 quads, int32 sums.
template <int kC, int kA, int kB>
inline void DotInt8Tiles() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
}

// DotTiles or DotInt8Tiles, depending on the type.
template <bool kInt8, int kC, int kA, int kB>
inline void Dot() {
  if constexpr (kInt8) {
    DotInt8Tiles<kC, kA, kB>();
  } else {
    DotTiles<kC, kA, kB>();
  }
}

// Loads a tile with distance to the next tile instruction: two other instructions after a load,
// eight after a product. Virtual machines, shared cores and power limits can slow the matrix unit
// to a fraction of its rate; adjacent tile instructions then take up to twice as long. At the full
// rate the distance costs nothing if the operands are in the cache.
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
