#include "base/blocks/block_format.h"

#include <cmath>
#include <cstring>

#include "base/dtype.h"

namespace skein {
namespace {

uint8_t ByteAt(const std::byte* bytes, int32_t i) { return std::to_integer<uint8_t>(bytes[i]); }

uint16_t HalfAt(const std::byte* bytes) {
  uint16_t half;
  std::memcpy(&half, bytes, sizeof(half));
  return half;
}

// Eight bytes at a time. Each operation on a word stays within the bytes, so their order is of no
// matter.
using Word = uint64_t;
constexpr Word kEach = 0x0101010101010101;  // one in each byte

Word LoadWord(const std::byte* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

void StoreWord(Word word, uint8_t* u) { std::memcpy(u, &word, sizeof(word)); }

// Adds the bits of `upper` above the low four of eight elements.
void AddUpperBits(Word upper, uint8_t* u) {
  Word low;
  std::memcpy(&low, u, sizeof(low));
  StoreWord(low | upper << 4, u);
}

// The low halves of `count` bytes are elements 0 to count - 1, the high halves the next ones. count
// is a multiple of 8.
void ReadHalves(const std::byte* bytes, int32_t count, uint8_t* u) {
  for (int32_t i = 0; i < count; i += 8) {
    const Word word = LoadWord(bytes + i);
    StoreWord(word & 15 * kEach, u + i);
    StoreWord(word >> 4 & 15 * kEach, u + count + i);
  }
}

void ReadNibbles(const std::byte* bytes, uint8_t* u) { ReadHalves(bytes, 16, u); }

// Bit i of the 32-bit word is the fifth bit of element i.
void AddFifthBits(const std::byte* bytes, uint8_t* u) {
  uint32_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  for (int32_t i = 0; i < kBlockTerms; i += 8) {
    // Byte j keeps bit j alone. Adding 127 moves it to the byte's last bit, without a carry.
    const Word apart = (bits >> i & 255) * kEach & 0x8040201008040201;
    const Word last = (apart + 127 * kEach) >> 7 & kEach;
    AddUpperBits(last, u + i);
  }
}

// Twelve bytes hold eight scales and eight minimums of six bits each. The first four of each are
// the low bits of one byte. The other four have four bits in a byte of their own, and their upper
// two bits in an earlier byte.
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

// Each 32 bytes hold 64 elements: the low halves are the first 32 elements, the high halves the
// next 32.
void ReadNibblesOfSuper(const std::byte* bytes, uint8_t* u) {
  for (int32_t i = 0; i < kSuperElements / 2; i += 32) ReadHalves(bytes + i, 32, u + 2 * i);
}

// Bit p of 32 bytes is the fifth bit of the elements of part p.
void AddFifthBitsOfSuper(const std::byte* bytes, uint8_t* u) {
  for (int32_t part = 0; part < kBlocksOfSuper; ++part, u += kBlockTerms) {
    for (int32_t i = 0; i < kBlockTerms; i += 8) {
      AddUpperBits(LoadWord(bytes + i) >> part & kEach, u + i);
    }
  }
}

// A half of 128 elements has four parts of 32. Parts 0 and 1 are the low halves of 64 bytes, parts
// 2 and 3 the high halves of the same bytes. 32 other bytes have the upper two bits of all four
// parts.
void ReadQ6KElements(const std::byte* bytes, FileBlock* out) {
  const std::byte *low = bytes, *high = bytes + 128;
  for (uint8_t* u = out->u; u < out->u + kSuperElements; u += 128, low += 64, high += 32) {
    ReadHalves(low, 64, u);
    for (int32_t i = 0; i < 128; i += 8) {
      AddUpperBits(LoadWord(high + i % 32) >> i / 32 * 2 & 3 * kEach, u + i);
    }
  }
}

void ReadIq4XsScales(const std::byte* bytes, FileBlock* out) {
  const uint16_t high = HalfAt(bytes + 2);
  for (int32_t i = 0; i < kBlocksOfSuper; ++i) {
    const int32_t low = ByteAt(bytes + 4, i / 2) >> 4 * (i % 2) & 15;
    out->scales[i] = static_cast<uint8_t>((low | (high >> 2 * i & 3) << 4) - 32);
  }
}

float Widen(uint16_t half) { return ToFloat(F16{half}); }

float SignedByte(uint8_t byte) { return static_cast<float>(static_cast<int8_t>(byte)); }

}  // namespace

FileBlock ReadFileScales(BlockFormat format, const std::byte* bytes) {
  FileBlock block;
  if (format != BlockFormat::kMxfp4) block.d = HalfAt(bytes);
  switch (format) {
    case BlockFormat::kQ4_0:
    case BlockFormat::kQ5_0:
    case BlockFormat::kQ8_0:
    case BlockFormat::kIq4Nl:
      break;
    case BlockFormat::kQ4_1:
    case BlockFormat::kQ5_1:
      block.dmin = HalfAt(bytes + 2);
      break;
    case BlockFormat::kQ4K:
    case BlockFormat::kQ5K:
      block.dmin = HalfAt(bytes + 2);
      ReadSixBitScales(bytes + 4, &block);
      break;
    case BlockFormat::kQ6K:
      std::memcpy(block.scales, bytes + 192, 16);
      block.d = HalfAt(bytes + 208);
      break;
    case BlockFormat::kIq4Xs:
      ReadIq4XsScales(bytes, &block);
      break;
    case BlockFormat::kInt4:
      block.minimums[0] = ByteAt(bytes, 2);
      break;
    case BlockFormat::kMxfp4:
      block.scales[0] = ByteAt(bytes, 0);
      break;
  }
  return block;
}

FileBlock ReadFileBlock(BlockFormat format, const std::byte* bytes) {
  FileBlock block = ReadFileScales(format, bytes);
  switch (format) {
    case BlockFormat::kQ4_0:
    case BlockFormat::kQ4_1:
    case BlockFormat::kIq4Nl:
    case BlockFormat::kInt4:
    case BlockFormat::kMxfp4:
      ReadNibbles(NibblesOf(format, bytes), block.u);
      break;
    case BlockFormat::kQ5_0:
      ReadNibbles(bytes + 6, block.u);
      AddFifthBits(bytes + 2, block.u);
      break;
    case BlockFormat::kQ5_1:
      ReadNibbles(bytes + 8, block.u);
      AddFifthBits(bytes + 4, block.u);
      break;
    case BlockFormat::kQ8_0:
      for (int32_t i = 0; i < kBlockTerms; i += 8) {
        StoreWord(LoadWord(bytes + 2 + i) ^ 0x80 * kEach, block.u + i);
      }
      break;
    case BlockFormat::kQ4K:
      ReadNibblesOfSuper(bytes + 16, block.u);
      break;
    case BlockFormat::kQ5K:
      ReadNibblesOfSuper(bytes + 48, block.u);
      AddFifthBitsOfSuper(bytes + 16, block.u);
      break;
    case BlockFormat::kQ6K:
      ReadQ6KElements(bytes, &block);
      break;
    case BlockFormat::kIq4Xs:
      for (int32_t i = 0; i < kBlocksOfSuper; ++i) {
        ReadNibbles(bytes + 8 + 16 * i, block.u + kBlockTerms * i);
      }
      break;
  }
  return block;
}

BlockTerms TermsOf(BlockFormat format, const FileBlock& block, int32_t part) {
  const BlockTraits& traits = TraitsOf(format);
  BlockTerms terms;
  for (int32_t i = 0; i < kBlockTerms; ++i) {
    const int32_t u = block.u[kBlockTerms * part + i];
    terms.values[i] =
        traits.codebook != nullptr ? traits.codebook[u] : static_cast<int8_t>(u - traits.zero);
  }
  terms.minimum = 0.0f;
  if (traits.scales == BlockScales::kExponent) {
    terms.scales[0] = terms.scales[1] = std::ldexp(1.0f, block.scales[0] - 128);
    return terms;
  }
  const float d = Widen(block.d);
  switch (traits.scales) {
    case BlockScales::kHalfMinimum:
      terms.minimum = Widen(block.dmin);
      [[fallthrough]];
    case BlockScales::kHalf:
      terms.scales[0] = terms.scales[1] = d;
      break;
    case BlockScales::kHalfZero:
      terms.scales[0] = terms.scales[1] = d;
      terms.minimum = -d * static_cast<float>(block.minimums[0]);
      break;
    case BlockScales::kSuperMinimum:
      terms.scales[0] = terms.scales[1] = d * static_cast<float>(block.scales[part]);
      terms.minimum = -(Widen(block.dmin) * static_cast<float>(block.minimums[part]));
      break;
    case BlockScales::kSuperHalves:
      terms.scales[0] = d * SignedByte(block.scales[2 * part]);
      terms.scales[1] = d * SignedByte(block.scales[2 * part + 1]);
      break;
    case BlockScales::kSuper:
      terms.scales[0] = terms.scales[1] = d * SignedByte(block.scales[part]);
      break;
    case BlockScales::kExponent:
      break;
  }
  return terms;
}

void DequantizeBlocks(BlockFormat format, const std::byte* bytes, int64_t num_blocks, float* out) {
  const BlockTraits& traits = TraitsOf(format);
  for (int64_t block = 0; block < num_blocks; ++block, bytes += traits.file_bytes) {
    const FileBlock read = ReadFileBlock(format, bytes);
    for (int32_t part = 0; part < traits.file_elements / kBlockTerms; ++part) {
      const BlockTerms terms = TermsOf(format, read, part);
      for (int32_t i = 0; i < kBlockTerms; ++i) {
        const float scaled = terms.scales[i / 16] * static_cast<float>(terms.values[i]);
        *out++ = traits.has_minimum() ? scaled + terms.minimum : scaled;
      }
    }
  }
}

}  // namespace skein
