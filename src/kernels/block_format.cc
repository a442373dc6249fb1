#include "kernels/block_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/dtype.h"

namespace skein {
namespace {

constexpr int32_t kColumns = 16;         // of a panel
constexpr int32_t kQuad = 4;             // adjacent elements of a column
constexpr int32_t kQuadBytes = 64;       // a quad of each column, a byte for each element
constexpr int32_t kSuperElements = 256;  // of a block with scales of scales
constexpr int32_t kBlocksOfSuper = kSuperElements / kBlockTerms;

constexpr BlockTraits kTraits[] = {
    {"Q4_0", BlockScales::kHalf, 4, 8, false, 32, 18},
    {"Q4_1", BlockScales::kHalfMinimum, 4, 0, false, 32, 20},
    {"Q5_0", BlockScales::kHalf, 5, 16, false, 32, 22},
    {"Q5_1", BlockScales::kHalfMinimum, 5, 0, false, 32, 24},
    {"Q8_0", BlockScales::kHalf, 8, 128, false, 32, 34},
    {"Q4_K", BlockScales::kSuperMinimum, 4, 0, false, 256, 144},
    {"Q5_K", BlockScales::kSuperMinimum, 5, 0, false, 256, 176},
    {"Q6_K", BlockScales::kSuperHalves, 6, 32, false, 256, 210},
    {"IQ4_NL", BlockScales::kHalf, 4, 0, true, 32, 18},
    {"IQ4_XS", BlockScales::kSuper, 4, 0, true, 256, 136},
};

// The bytes of a panel's scales for 32, or for 256 elements of k.
int32_t ScaleUnitBytes(BlockScales scales) {
  switch (scales) {
    case BlockScales::kHalf:
      return 2 * kColumns;
    case BlockScales::kHalfMinimum:
      return 4 * kColumns;
    case BlockScales::kSuperMinimum:
      return 4 * kColumns + kBlocksOfSuper * 2 * kColumns;
    case BlockScales::kSuperHalves:
      return 2 * kColumns + kBlocksOfSuper * 2 * kColumns;
    case BlockScales::kSuper:
      break;
  }
  return 2 * kColumns + kBlocksOfSuper * kColumns;
}

// One block of a file: u of its elements and its scales, which are f16 bits or small integers.
struct FileBlock {
  uint8_t u[kSuperElements];
  uint16_t d, dmin;                 // of the block; dmin is the minimum of a block of 32
  uint8_t scales[16], minimums[8];  // of 32 elements each; in Q6_K scales of 16
};

uint8_t ByteAt(const std::byte* bytes, int32_t i) { return std::to_integer<uint8_t>(bytes[i]); }

uint16_t HalfAt(const std::byte* bytes) {
  uint16_t half;
  std::memcpy(&half, bytes, sizeof(half));
  return half;
}

// The low halves of 16 bytes are elements 0 to 15, the high halves elements 16 to 31.
void ReadNibbles(const std::byte* bytes, uint8_t* u) {
  for (int32_t i = 0; i < 16; ++i) {
    u[i] = ByteAt(bytes, i) & 15;
    u[i + 16] = ByteAt(bytes, i) >> 4;
  }
}

// Bit i of a word is the fifth bit of element i.
void AddFifthBits(const std::byte* bytes, uint8_t* u) {
  uint32_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  for (int32_t i = 0; i < kBlockTerms; ++i) u[i] |= static_cast<uint8_t>((bits >> i & 1) << 4);
}

// Twelve bytes hold eight scales and eight minimums of six bits: the first four of each in a byte's
// low bits, the others in four bits of a byte of their own and the upper two of an earlier byte.
void ReadSixBitScales(const std::byte* bytes, FileBlock* out) {
  for (int32_t i = 0; i < 4; ++i) {
    const uint8_t first = ByteAt(bytes, i), second = ByteAt(bytes, i + 4);
    const uint8_t third = ByteAt(bytes, i + 8);
    out->scales[i] = first & 63;
    out->minimums[i] = second & 63;
    out->scales[i + 4] = static_cast<uint8_t>((third & 15) | (first >> 6) << 4);
    out->minimums[i + 4] = static_cast<uint8_t>((third >> 4) | (second >> 6) << 4);
  }
}

// Each 32 bytes hold 64 elements: the low halves the first 32, the high halves the next.
void ReadNibblesOfSuper(const std::byte* bytes, uint8_t* u) {
  for (int32_t i = 0; i < kSuperElements / 2; ++i) {
    const int32_t at = i / 32 * 64 + i % 32;
    u[at] = ByteAt(bytes, i) & 15;
    u[at + 32] = ByteAt(bytes, i) >> 4;
  }
}

void ReadQ6K(const std::byte* bytes, FileBlock* out) {
  const std::byte *low = bytes, *high = bytes + 128, *scales = bytes + 192;
  for (int32_t i = 0; i < kSuperElements; ++i) {
    // A half of 128 elements is four parts of 32. Parts 0 and 1 are low halves of bytes, 2 and 3
    // the high halves of the same.
    const int32_t half = i / 128, part = i % 128 / 32, l = i % 32;
    const uint8_t nibbles = ByteAt(low, 64 * half + part % 2 * 32 + l);
    const uint8_t upper = ByteAt(high, 32 * half + l) >> 2 * part & 3;
    out->u[i] = static_cast<uint8_t>((part < 2 ? nibbles & 15 : nibbles >> 4) | upper << 4);
  }
  std::memcpy(out->scales, scales, 16);
  out->d = HalfAt(bytes + 208);
}

void ReadIq4Xs(const std::byte* bytes, FileBlock* out) {
  out->d = HalfAt(bytes);
  const uint16_t high = HalfAt(bytes + 2);
  for (int32_t i = 0; i < kBlocksOfSuper; ++i) {
    const int32_t low = ByteAt(bytes + 4, i / 2) >> 4 * (i % 2) & 15;
    out->scales[i] = static_cast<uint8_t>((low | (high >> 2 * i & 3) << 4) - 32);
    ReadNibbles(bytes + 8 + 16 * i, out->u + kBlockTerms * i);
  }
}

FileBlock ReadFileBlock(BlockFormat format, const std::byte* bytes) {
  FileBlock block = {};
  block.d = HalfAt(bytes);
  switch (format) {
    case BlockFormat::kQ4_0:
    case BlockFormat::kIq4Nl:
      ReadNibbles(bytes + 2, block.u);
      break;
    case BlockFormat::kQ4_1:
      block.dmin = HalfAt(bytes + 2);
      ReadNibbles(bytes + 4, block.u);
      break;
    case BlockFormat::kQ5_0:
      ReadNibbles(bytes + 6, block.u);
      AddFifthBits(bytes + 2, block.u);
      break;
    case BlockFormat::kQ5_1:
      block.dmin = HalfAt(bytes + 2);
      ReadNibbles(bytes + 8, block.u);
      AddFifthBits(bytes + 4, block.u);
      break;
    case BlockFormat::kQ8_0:
      for (int32_t i = 0; i < kBlockTerms; ++i) block.u[i] = ByteAt(bytes + 2, i) ^ 0x80;
      break;
    case BlockFormat::kQ4K:
      block.dmin = HalfAt(bytes + 2);
      ReadSixBitScales(bytes + 4, &block);
      ReadNibblesOfSuper(bytes + 16, block.u);
      break;
    case BlockFormat::kQ5K:
      block.dmin = HalfAt(bytes + 2);
      ReadSixBitScales(bytes + 4, &block);
      ReadNibblesOfSuper(bytes + 48, block.u);
      for (int32_t i = 0; i < kSuperElements; ++i) {
        block.u[i] |= static_cast<uint8_t>((ByteAt(bytes + 16, i % 32) >> i / 32 & 1) << 4);
      }
      break;
    case BlockFormat::kQ6K:
      ReadQ6K(bytes, &block);
      break;
    case BlockFormat::kIq4Xs:
      ReadIq4Xs(bytes, &block);
      break;
  }
  return block;
}

int32_t ValueUnitBytes(int32_t bits) { return bits * kBlockTerms * kColumns / 8; }

// The four elements of quad `quad` of a column lie in bytes 4 column to 4 column + 3 of a vector of
// 64 bytes. Two quads share a vector of low halves; the fifth bits of all eight lie in one vector,
// two upper bits of four quads in one vector.
struct ElementPlace {
  int32_t low_byte, low_shift;
  int32_t high_byte, high_shift;  // with 5 or 6 bits
};

ElementPlace PlaceOf(int32_t bits, int32_t column, int32_t i) {
  const int32_t quad = i / kQuad, byte = kQuad * column + i % kQuad;
  constexpr int32_t kLowBytes = 4 * kQuadBytes;
  if (bits == 8) return {quad * kQuadBytes + byte, 0, 0, 0};
  const int32_t low = quad / 2 * kQuadBytes + byte, shift = quad % 2 * 4;
  if (bits == 5) return {low, shift, kLowBytes + byte, quad};
  return {low, shift, kLowBytes + quad / 4 * kQuadBytes + byte, quad % 4 * 2};
}

void PutBits(std::byte* at, int32_t shift, int32_t bits) {
  *at |= static_cast<std::byte>(bits << shift);
}

int32_t GetBits(const std::byte* at, int32_t shift, int32_t count) {
  return std::to_integer<int32_t>(*at) >> shift & ((1 << count) - 1);
}

void PutElement(int32_t bits, std::byte* unit, int32_t column, int32_t i, int32_t u) {
  const ElementPlace place = PlaceOf(bits, column, i);
  if (bits == 8) return PutBits(unit + place.low_byte, 0, u);
  PutBits(unit + place.low_byte, place.low_shift, u & 15);
  if (bits > 4) PutBits(unit + place.high_byte, place.high_shift, u >> 4);
}

int32_t GetElement(int32_t bits, const std::byte* unit, int32_t column, int32_t i) {
  const ElementPlace place = PlaceOf(bits, column, i);
  if (bits == 8) return GetBits(unit + place.low_byte, 0, 8);
  const int32_t low = GetBits(unit + place.low_byte, place.low_shift, 4);
  if (bits == 4) return low;
  return low | GetBits(unit + place.high_byte, place.high_shift, bits - 4) << 4;
}

void PutScales(BlockScales kind, const FileBlock& block, std::byte* unit, int32_t column) {
  const auto put_half = [column](std::byte* to, uint16_t half) {
    std::memcpy(to + 2 * column, &half, sizeof(half));
  };
  put_half(unit, block.d);
  std::byte* rest = unit + 2 * kColumns;
  if (kind == BlockScales::kHalf) return;
  if (kind == BlockScales::kHalfMinimum) return put_half(rest, block.dmin);
  if (kind == BlockScales::kSuperMinimum) {
    put_half(rest, block.dmin);
    rest += 2 * kColumns;
  }
  const int32_t row = kind == BlockScales::kSuper ? kColumns : 2 * kColumns;
  for (int32_t i = 0; i < kBlocksOfSuper; ++i, rest += row) {
    const bool halves = kind == BlockScales::kSuperHalves;
    rest[column] = static_cast<std::byte>(block.scales[halves ? 2 * i : i]);
    if (kind == BlockScales::kSuper) continue;
    rest[kColumns + column] =
        static_cast<std::byte>(halves ? block.scales[2 * i + 1] : block.minimums[i]);
  }
}

void GetScales(BlockScales kind, const std::byte* scales, int32_t column, int32_t block,
               BlockTerms* out) {
  const auto half = [column](const std::byte* from) {
    return ToFloat(F16{HalfAt(from + 2 * column)});
  };
  const bool super = kind != BlockScales::kHalf && kind != BlockScales::kHalfMinimum;
  const std::byte* unit =
      scales + int64_t{super ? block / kBlocksOfSuper : block} * ScaleUnitBytes(kind);
  const std::byte* rest = unit + 2 * kColumns;
  const int32_t i = block % kBlocksOfSuper;
  const float d = half(unit);
  out->minimum = 0.0f;
  if (!super) {
    out->scales[0] = out->scales[1] = d;
    if (kind == BlockScales::kHalfMinimum) out->minimum = half(rest);
    return;
  }
  if (kind == BlockScales::kSuperMinimum) {
    const std::byte* row = rest + 2 * kColumns + i * 2 * kColumns;
    out->scales[0] = out->scales[1] = d * ByteAt(row, column);
    out->minimum = -(half(rest) * ByteAt(row, kColumns + column));
    return;
  }
  const auto signed_at = [column](const std::byte* row) {
    return static_cast<float>(static_cast<int8_t>(row[column]));
  };
  if (kind == BlockScales::kSuper) {
    out->scales[0] = out->scales[1] = d * signed_at(rest + i * kColumns);
    return;
  }
  const std::byte* row = rest + i * 2 * kColumns;
  out->scales[0] = d * signed_at(row);
  out->scales[1] = d * signed_at(row + kColumns);
}

}  // namespace

const BlockTraits& TraitsOf(BlockFormat format) { return kTraits[static_cast<size_t>(format)]; }

std::optional<BlockFormat> FindBlockFormat(std::string_view name) {
  const auto* found = std::ranges::find(kTraits, name, &BlockTraits::name);
  if (found == std::end(kTraits)) return std::nullopt;
  return static_cast<BlockFormat>(found - std::begin(kTraits));
}

size_t PanelValueBytes(BlockFormat format, int32_t k) {
  const BlockTraits& traits = TraitsOf(format);
  SKEIN_CHECK(k >= 1 && k % traits.file_elements == 0);
  return size_t(k / kBlockTerms) * ValueUnitBytes(traits.bits);
}

size_t PanelScaleBytes(BlockFormat format, int32_t k) {
  const BlockTraits& traits = TraitsOf(format);
  return size_t(k / traits.file_elements) * ScaleUnitBytes(traits.scales);
}

void PackBlockRow(BlockFormat format, const std::byte* file_row, int32_t k, int32_t column,
                  std::byte* values, std::byte* scales) {
  const BlockTraits& traits = TraitsOf(format);
  for (int32_t i = 0; i < k; i += traits.file_elements) {
    const FileBlock block = ReadFileBlock(format, file_row);
    for (int32_t e = 0; e < traits.file_elements; ++e) {
      std::byte* unit = values + int64_t{(i + e) / kBlockTerms} * ValueUnitBytes(traits.bits);
      PutElement(traits.bits, unit, column, (i + e) % kBlockTerms, block.u[e]);
    }
    PutScales(traits.scales, block, scales, column);
    file_row += traits.file_bytes;
    scales += ScaleUnitBytes(traits.scales);
  }
}

BlockTerms ReadBlockTerms(BlockFormat format, const std::byte* values, const std::byte* scales,
                          int32_t column, int32_t block) {
  const BlockTraits& traits = TraitsOf(format);
  const std::byte* unit = values + int64_t{block} * ValueUnitBytes(traits.bits);
  BlockTerms terms;
  for (int32_t i = 0; i < kBlockTerms; ++i) {
    const int32_t u = GetElement(traits.bits, unit, column, i);
    terms.values[i] = static_cast<int8_t>(traits.codebook ? kBlockCodebook[u] : u - traits.zero);
  }
  GetScales(traits.scales, scales, column, block, &terms);
  return terms;
}

void QuantizeQ4Row(std::span<const float> x, std::byte* out) {
  constexpr int32_t kCandidates = 9;  // scales that put the largest element at 7 to 9 steps
  SKEIN_CHECK(x.size() % kBlockTerms == 0);
  for (; !x.empty(); x = x.subspan(kBlockTerms), out += 18) {
    const auto block = x.first(kBlockTerms);
    const float extreme = *std::ranges::max_element(
        block, [](float a, float b) { return std::abs(a) < std::abs(b); });
    if (!std::ranges::all_of(block, [](float e) { return std::isfinite(e); })) {
      const F16 half = ToF16(std::numeric_limits<float>::quiet_NaN());
      std::memcpy(out, &half, sizeof(half));
      std::fill_n(out + 2, 16, std::byte{0});
      continue;
    }
    float best_error = std::numeric_limits<float>::infinity();
    for (int32_t candidate = 0; candidate < kCandidates; ++candidate) {
      // The steps reach from -8 to 7: the largest element takes the sign that has 8.
      const float steps = 7.0f + 0.25f * static_cast<float>(candidate);
      const F16 half = ToF16(extreme / -steps);
      const float scale = ToFloat(half), inverse = scale == 0.0f ? 0.0f : 1.0f / scale;
      uint8_t u[kBlockTerms];
      float error = 0.0f;
      for (int32_t i = 0; i < kBlockTerms; ++i) {
        const float q = std::clamp(std::nearbyint(block[i] * inverse), -8.0f, 7.0f);
        const float miss = block[i] - scale * q;
        error += miss * miss;
        u[i] = static_cast<uint8_t>(q + 8.0f);
      }
      if (candidate > 0 && !(error < best_error)) continue;
      best_error = error;
      std::memcpy(out, &half, sizeof(half));
      for (int32_t i = 0; i < 16; ++i) out[2 + i] = static_cast<std::byte>(u[i] | u[i + 16] << 4);
    }
  }
}

}  // namespace skein
