#include "kernels/block_panel.h"

#include <cstring>

#include "base/check.h"

namespace skein {
namespace {

constexpr int32_t kColumns = 16;    // of a panel: one for each of its 16 rows of the weight matrix
constexpr int32_t kQuad = 4;        // adjacent elements of a column
constexpr int32_t kQuadBytes = 64;  // of one quad of each column, at a byte per element

uint8_t ByteAt(const std::byte* bytes, int32_t i) { return std::to_integer<uint8_t>(bytes[i]); }

uint16_t HalfAt(const std::byte* bytes) {
  uint16_t half;
  std::memcpy(&half, bytes, sizeof(half));
  return half;
}

int32_t ValueUnitBytes(int32_t bits) { return bits * kBlockTerms * kColumns / 8; }

// The four elements of quad `quad` of a column lie in bytes 4 * column to 4 * column + 3 of a
// vector of 64 bytes. Two quads share a vector: the first lies in the low four bits of the bytes,
// the second in the high ones. The fifth bits of all eight quads lie in one vector, the upper two
// bits of four quads in one vector.
struct ElementPlace {
  int32_t low_byte, low_shift;
  int32_t high_byte, high_shift;  // used if an element has 5 or 6 bits
};

ElementPlace PlaceOf(int32_t bits, int32_t column, int32_t i) {
  const int32_t quad = i / kQuad, byte = kQuad * column + i % kQuad;
  constexpr int32_t kLowBytes = 4 * kQuadBytes;
  if (bits == 8) return {quad * kQuadBytes + byte, 0, 0, 0};
  const int32_t low = quad / 2 * kQuadBytes + byte, shift = quad % 2 * 4;
  if (bits == 5) return {low, shift, kLowBytes + byte, quad};
  return {low, shift, kLowBytes + quad / 4 * kQuadBytes + byte, quad % 4 * 2};
}

int32_t GetBits(const std::byte* at, int32_t shift, int32_t count) {
  return std::to_integer<int32_t>(*at) >> shift & ((1 << count) - 1);
}

// The inverse of GetElement for the 32 elements of a column: sets all bits of the column.
void PutElements(int32_t bits, const uint8_t* u, int32_t column, std::byte* unit) {
  constexpr int32_t kQuads = kBlockTerms / kQuad;
  uint32_t quads[kQuads];
  std::memcpy(quads, u, sizeof(quads));
  const auto put = [to = unit + kQuad * column](int32_t vector, uint32_t word) {
    std::memcpy(to + vector * kQuadBytes, &word, sizeof(word));
  };
  if (bits == 8) {
    for (int32_t i = 0; i < kQuads; ++i) put(i, quads[i]);
    return;
  }
  // The operations on words stay within the bytes.
  constexpr uint32_t kEach = 0x01010101;
  for (int32_t i = 0; i < kQuads; i += 2) {
    put(i / 2, (quads[i] & 15 * kEach) | (quads[i + 1] & 15 * kEach) << 4);
  }
  if (bits == 4) return;
  const int32_t upper_bits = bits - 4, per_vector = 8 / upper_bits;
  const uint32_t mask = ((1u << upper_bits) - 1) * kEach;
  for (int32_t i = 0; i < kQuads; i += per_vector) {
    uint32_t word = 0;
    for (int32_t j = 0; j < per_vector; ++j) {
      word |= (quads[i + j] >> 4 & mask) << upper_bits * j;
    }
    put((kQuads / 2) + i / per_vector, word);
  }
}

// PutElements for the elements of a block of a file (NibblesOf).
void PutNibbles(const std::byte* nibbles, int32_t column, std::byte* unit) {
  constexpr uint32_t kLow = 0x0f0f0f0f;
  std::byte* to = unit + kQuad * column;
  for (int32_t i = 0; i < 2; ++i) {
    uint32_t first, second;
    std::memcpy(&first, nibbles + 8 * i, sizeof(first));
    std::memcpy(&second, nibbles + 8 * i + 4, sizeof(second));
    const uint32_t low = (first & kLow) | (second & kLow) << 4;
    const uint32_t high = (first >> 4 & kLow) | (second & ~kLow);
    std::memcpy(to + i * kQuadBytes, &low, sizeof(low));
    std::memcpy(to + (2 + i) * kQuadBytes, &high, sizeof(high));
  }
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
  if (kind == BlockScales::kExponent) {
    unit[column] = static_cast<std::byte>(block.scales[0]);
    return;
  }
  put_half(unit, block.d);
  std::byte* rest = unit + 2 * kColumns;
  if (kind == BlockScales::kHalf) return;
  if (kind == BlockScales::kHalfMinimum) return put_half(rest, block.dmin);
  if (kind == BlockScales::kHalfZero) {
    rest[column] = static_cast<std::byte>(block.minimums[0]);
    return;
  }
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

// The inverse of PutScales for 32 elements. `block` is the number of the 32 elements among those
// that share d.
void GetScales(BlockScales kind, const std::byte* unit, int32_t column, int32_t block,
               FileBlock* out) {
  if (kind == BlockScales::kExponent) {
    out->scales[0] = ByteAt(unit, column);
    return;
  }
  out->d = HalfAt(unit + 2 * column);
  const std::byte* rest = unit + 2 * kColumns;
  if (kind == BlockScales::kHalf) return;
  if (kind == BlockScales::kHalfMinimum) {
    out->dmin = HalfAt(rest + 2 * column);
    return;
  }
  if (kind == BlockScales::kHalfZero) {
    out->minimums[0] = ByteAt(rest, column);
    return;
  }
  if (kind == BlockScales::kSuperMinimum) {
    out->dmin = HalfAt(rest + 2 * column);
    rest += 2 * kColumns;
  }
  if (kind == BlockScales::kSuper) {
    out->scales[block] = ByteAt(rest + block * kColumns, column);
    return;
  }
  const std::byte* row = rest + block * 2 * kColumns;
  const bool halves = kind == BlockScales::kSuperHalves;
  out->scales[halves ? 2 * block : block] = ByteAt(row, column);
  const uint8_t second = ByteAt(row, kColumns + column);
  (halves ? out->scales[2 * block + 1] : out->minimums[block]) = second;
}

}  // namespace

size_t PanelValueBytes(BlockFormat format, int32_t k) {
  const BlockTraits& traits = TraitsOf(format);
  SKEIN_CHECK(k >= 1 && k % traits.file_elements == 0);
  return size_t(k / kBlockTerms) * ValueUnitBytes(traits.bits);
}

size_t PanelScaleBytes(BlockFormat format, int32_t k) {
  const BlockTraits& traits = TraitsOf(format);
  return size_t(k / traits.file_elements) * ScaleUnitBytes(traits.scales);
}

void PackBlockRows(BlockFormat format, const std::byte* file_rows, int32_t num_rows, int32_t k,
                   int32_t column, std::byte* values, std::byte* scales) {
  SKEIN_CHECK(column >= 0 && num_rows >= 0 && num_rows <= kColumns - column);
  const BlockTraits& traits = TraitsOf(format);
  const size_t row_bytes = size_t(k / traits.file_elements) * traits.file_bytes;
  const int32_t value_bytes = ValueUnitBytes(traits.bits);
  const bool has_nibbles = HasNibbles(format);
  for (int32_t i = 0; i < k; i += traits.file_elements, file_rows += traits.file_bytes) {
    for (int32_t r = 0; r < num_rows; ++r) {
      const std::byte* file_block = file_rows + r * row_bytes;
      if (has_nibbles) {
        PutNibbles(NibblesOf(format, file_block), column + r, values);
        PutScales(traits.scales, ReadFileScales(format, file_block), scales, column + r);
        continue;
      }
      const FileBlock block = ReadFileBlock(format, file_block);
      for (int32_t part = 0; part < traits.file_elements / kBlockTerms; ++part) {
        PutElements(traits.bits, block.u + part * kBlockTerms, column + r,
                    values + part * value_bytes);
      }
      PutScales(traits.scales, block, scales, column + r);
    }
    values += traits.file_elements / kBlockTerms * value_bytes;
    scales += ScaleUnitBytes(traits.scales);
  }
}

BlockTerms ReadBlockTerms(BlockFormat format, const std::byte* values, const std::byte* scales,
                          int32_t column, int32_t block) {
  const BlockTraits& traits = TraitsOf(format);
  const int32_t parts = traits.file_elements / kBlockTerms, part = block % parts;
  const std::byte* unit = values + int64_t{block} * ValueUnitBytes(traits.bits);
  FileBlock read = {};
  for (int32_t i = 0; i < kBlockTerms; ++i) {
    const int32_t u = GetElement(traits.bits, unit, column, i);
    read.u[kBlockTerms * part + i] = static_cast<uint8_t>(u);
  }
  GetScales(traits.scales, scales + int64_t{block / parts} * ScaleUnitBytes(traits.scales), column,
            part, &read);
  return TermsOf(format, read, part);
}

}  // namespace skein
