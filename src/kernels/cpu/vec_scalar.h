#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/dtype.h"
#include "kernels/block_panel.h"
#include "kernels/fma_clones.h"

namespace skein::scalar {

// 16 f32 lanes in portable code, for machines without a vector unit that we support.
struct Vec {
  static constexpr int kTileRows = 2;  // rows and panels of a register tile
  static constexpr int kTilePanels = 1;
  // Up to kStreamRows rows read kStreamPanels panels at the same time and prefetch each of them
  // kStreamAhead bytes ahead.
  static constexpr int kStreamPanels = 1;
  static constexpr int kStreamRows = 1;
  static constexpr int kStreamAhead = 2048;
  static constexpr int kBlockRows = 2;  // rows of a register tile of blocks
  // The most rows for which blocks are not unpacked to memory: of formats with a byte for each
  // value, and of the others.
  static constexpr int kDirectByteRows = 1;
  static constexpr int kDirectRows = 1;
  // Panels of Q8_0 read at the same time for a single row.
  static constexpr int kBlockStreams = 1;

  struct Doubles;

  float lane[16];

  static Vec Set(float x) {
    Vec v;
    for (float& e : v.lane) e = x;
    return v;
  }
  static Vec Load(const float* p) { return LoadFirst(p, 16); }
  // Loads n lanes from p. Lanes from n on are +0, and their memory is not read.
  static Vec LoadFirst(const float* p, int n) {
    Vec v = Set(0.0f);
    std::memcpy(v.lane, p, sizeof(float) * n);
    return v;
  }
  void Store(float* p) const { StoreFirst(p, 16); }
  void StoreFirst(float* p, int n) const { std::memcpy(p, lane, sizeof(float) * n); }

  // Loads bf16, which are given as bits. Widening is exact; narrowing rounds to nearest even and
  // keeps a NaN a NaN.
  static Vec LoadBf16First(const uint16_t* p, int n) {
    Vec v = Set(0.0f);
    for (int i = 0; i < n; ++i) v.lane[i] = FromBits(uint32_t{p[i]} << 16);
    return v;
  }
  void StoreBf16First(uint16_t* p, int n) const {
    for (int i = 0; i < n; ++i) {
      const uint32_t bits = ToBits(lane[i]);
      const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
      p[i] =
          static_cast<uint16_t>((nan ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
    }
  }
  // The first (LoadEven) or second (LoadOdd) element of each of 16 pairs of bf16.
  static Vec LoadEven(const std::byte* p) {
    Vec v;
    for (int i = 0; i < 16; ++i) v.lane[i] = FromBits(LoadPair(p, i) << 16);
    return v;
  }
  static Vec LoadOdd(const std::byte* p) {
    Vec v;
    for (int i = 0; i < 16; ++i) v.lane[i] = FromBits(LoadPair(p, i) & 0xffff0000u);
    return v;
  }
  // Loads 16 f16, or 16 integers of one byte each, exactly.
  static Vec LoadHalves(const std::byte* p) {
    Vec v;
    for (int i = 0; i < 16; ++i) {
      F16 half;
      std::memcpy(&half, p + 2 * i, sizeof(half));
      v.lane[i] = ToFloat(half);
    }
    return v;
  }
  static Vec LoadBytes(const std::byte* p) {
    Vec v;
    for (int i = 0; i < 16; ++i) v.lane[i] = std::to_integer<uint8_t>(p[i]);
    return v;
  }
  static Vec LoadSignedBytes(const std::byte* p) {
    Vec v;
    for (int i = 0; i < 16; ++i) v.lane[i] = static_cast<int8_t>(p[i]);
    return v;
  }
  static void Prefetch(const std::byte* p) { __builtin_prefetch(p); }

  // The sum ((l0 + l8) + (l4 + l12)) + ...: halves are added until one lane is left.
  float Sum() const {
    Vec v = *this;
    for (int half = 8; half >= 1; half /= 2) {
      for (int i = 0; i < half; ++i) v.lane[i] += v.lane[i + half];
    }
    return v.lane[0];
  }
  // The largest lane that is not NaN; -inf if all lanes are NaN.
  float Largest() const {
    float max = -__builtin_inff();
    for (float e : lane) max = e > max ? e : max;
    return max;
  }
  Vec RoundToBf16() const {
    uint16_t bits[16];
    StoreBf16First(bits, 16);
    return LoadBf16First(bits, 16);
  }

  // Loads 16 int32, each rounded to f32.
  static Vec LoadInts(const void* p) {
    int32_t ints[16];
    std::memcpy(ints, p, sizeof(ints));
    Vec v;
    for (int i = 0; i < 16; ++i) v.lane[i] = static_cast<float>(ints[i]);
    return v;
  }
  // Stores lanes of magnitude at most 127, rounded to integers, ties to even.
  void StoreInt8First(int8_t* p, int n) const {
    for (int i = 0; i < n; ++i) p[i] = static_cast<int8_t>(__builtin_nearbyintf(lane[i]));
  }
  // The sum of 16 bytes.
  static int32_t SumOfBytes(const int8_t* p) {
    int32_t sum = 0;
    for (int i = 0; i < 16; ++i) sum += p[i];
    return sum;
  }
  // The bits of the largest magnitude. A NaN has larger bits than any number.
  uint32_t LargestMagnitude() const {
    uint32_t largest = 0;
    for (float e : lane) largest = ToBits(e) > largest ? ToBits(e) : largest;
    return largest;
  }

  // Used only by the operators below.
  static uint32_t ToBits(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    return bits;
  }
  static float FromBits(uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
  }
  static uint32_t LoadPair(const std::byte* p, int i) {
    uint32_t pair;
    std::memcpy(&pair, p + 4 * i, 4);
    return pair;
  }
};

// 16 sums in f64, one for each lane.
struct Vec::Doubles {
  double lane[16];

  static Doubles Zero() {
    Doubles sums;
    for (double& e : sums.lane) e = 0.0;
    return sums;
  }
  void Add(const Vec& v) {
    for (int i = 0; i < 16; ++i) lane[i] += double{v.lane[i]};
  }
  // Adds halves until one lane is left, as Vec::Sum does.
  double Sum() const {
    Doubles sums = *this;
    for (int half = 8; half >= 1; half /= 2) {
      for (int i = 0; i < half; ++i) sums.lane[i] += sums.lane[i + half];
    }
    return sums.lane[0];
  }
};

inline Vec operator+(Vec a, const Vec& b) {
  for (int i = 0; i < 16; ++i) a.lane[i] += b.lane[i];
  return a;
}
inline Vec operator-(Vec a, const Vec& b) {
  for (int i = 0; i < 16; ++i) a.lane[i] -= b.lane[i];
  return a;
}
inline Vec operator*(Vec a, const Vec& b) {
  for (int i = 0; i < 16; ++i) a.lane[i] *= b.lane[i];
  return a;
}
inline Vec operator/(Vec a, const Vec& b) {
  for (int i = 0; i < 16; ++i) a.lane[i] /= b.lane[i];
  return a;
}
// c[i] = a[i] * b[i] + c[i], rounded once, for 16 lanes. Portable code calls the C library for each
// lane. On a processor with an FMA instruction, a version with this instruction runs, which makes
// tests of this vector faster.
SKEIN_FMA_CLONES void FmaLanes(const float* a, const float* b, float* c);

// a * b + c, rounded once.
inline Vec Fma(const Vec& a, const Vec& b, Vec c) {
  FmaLanes(a.lane, b.lane, c.lane);
  return c;
}
// The result for each lane: a > b ? x : y (y where a or b is NaN).
inline Vec IfGreater(const Vec& a, const Vec& b, const Vec& x, Vec y) {
  for (int i = 0; i < 16; ++i) y.lane[i] = a.lane[i] > b.lane[i] ? x.lane[i] : y.lane[i];
  return y;
}
// Bit i is set if a > b in lane i.
inline uint32_t GreaterMask(const Vec& a, const Vec& b) {
  uint32_t mask = 0;
  for (int i = 0; i < 16; ++i) mask |= uint32_t{a.lane[i] > b.lane[i]} << i;
  return mask;
}
// The larger of a, which is a magnitude, and the magnitude of b, for each lane, compared by bits.
inline Vec MaxMagnitude(Vec a, const Vec& b) {
  for (int i = 0; i < 16; ++i) {
    const uint32_t bits = Vec::ToBits(b.lane[i]) & 0x7fffffffu;
    if (bits > Vec::ToBits(a.lane[i])) a.lane[i] = Vec::FromBits(bits);
  }
  return a;
}
// Adds the integer in the low bits of each lane of n to the exponent of the same lane of p.
inline Vec AddExponent(Vec p, const Vec& n) {
  for (int i = 0; i < 16; ++i)
    p.lane[i] = Vec::FromBits(Vec::ToBits(p.lane[i]) + (Vec::ToBits(n.lane[i]) << 23));
  return p;
}

// The sums of int8 products of 16 columns.
struct Sums {
  static constexpr int kRows = 2;  // of a register tile
  // Whether the sums start from PackedWeight::offsets, or from zero.
  static constexpr bool kStartsFromOffsets = false;
  int32_t lane[16];

  struct Quads {
    int8_t lane[16][4];
  };
  static Quads LoadQuads(const std::byte* p) {
    Quads q;
    std::memcpy(&q, p, sizeof(q));
    return q;
  }
  // Four int8 values of a row, which are multiplied by the quads of every column.
  using Row = Quads;
  static Row Broadcast(int32_t quad) {
    Row row;
    for (auto& column : row.lane) std::memcpy(column, &quad, 4);
    return row;
  }
  static Sums Load(const int32_t* p) {
    Sums sums;
    std::memcpy(sums.lane, p, sizeof(sums.lane));
    return sums;
  }
  void Store(int32_t* p) const { std::memcpy(p, lane, sizeof(lane)); }
};

inline Sums Dot(Sums sums, const Sums::Row& a, const Sums::Quads& w) {
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 4; ++j) sums.lane[i] += a.lane[i][j] * w.lane[i][j];
  }
  return sums;
}

// The operations on the quads of a matrix of blocks: 4 elements of each of 16 columns.
struct Blocks {
  // The number to subtract from each signed value: FromOffset returns value + kSignedZero.
  static constexpr int32_t kSignedZero = 0;
  // Whether there is Dots, which reads each of the quads in memory once for all rows of a tile. It
  // is for instruction sets with too few registers for the quads of a block.
  static constexpr bool kSharesQuads = false;

  struct Quads {
    uint8_t byte[64];
  };
  static Quads Load(const std::byte* p) {
    Quads quads;
    std::memcpy(&quads, p, sizeof(quads));
    return quads;
  }
  static void Store(const Quads& quads, std::byte* p) { std::memcpy(p, &quads, sizeof(quads)); }
  static Quads LowHalves(Quads quads) {
    for (uint8_t& byte : quads.byte) byte &= 15;
    return quads;
  }
  static Quads HighHalves(Quads quads) {
    for (uint8_t& byte : quads.byte) byte >>= 4;
    return quads;
  }
  // The bits under kMask of each byte, shifted left by kShift (or right if kShift is negative).
  template <int kShift, int kMask>
  static Quads UpperBits(Quads quads) {
    for (uint8_t& byte : quads.byte) {
      byte = static_cast<uint8_t>((kShift >= 0 ? byte << (kShift & 7) : byte >> (-kShift & 7)) &
                                  kMask);
    }
    return quads;
  }
  static Quads Or(Quads a, const Quads& b) {
    for (int i = 0; i < 64; ++i) a.byte[i] |= b.byte[i];
    return a;
  }
  // The values of the codebook, plus kOffset.
  template <Codebook kCodebook, int kOffset>
  static Quads LookUp(Quads quads) {
    for (uint8_t& byte : quads.byte) byte = static_cast<uint8_t>(kCodebook[byte] + kOffset);
    return quads;
  }
  // Makes values from bytes that hold value + 128.
  static Quads FromOffset(Quads quads) {
    for (uint8_t& byte : quads.byte) byte ^= 0x80;
    return quads;
  }
  // start + the sums over kCount quads of their columns times q [4 kCount], converted to f32. kBits
  // is the number of bits of a value; 8 means signed values.
  template <int kBits, int kCount>
  static Vec Dot(const Quads* w, const int8_t* q, int32_t start) {
    Vec v;
    for (int column = 0; column < 16; ++column) {
      int32_t sum = start;
      for (int i = 0; i < 4 * kCount; ++i) {
        const uint8_t byte = w[i / 4].byte[4 * column + i % 4];
        sum += q[i] * (kBits == 8 ? int32_t{static_cast<int8_t>(byte)} : int32_t{byte});
      }
      v.lane[column] = static_cast<float>(sum);
    }
    return v;
  }
};

}  // namespace skein::scalar
