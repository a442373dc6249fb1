#include "io/gguf_types.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/dtype.h"

namespace skein {
namespace {

float ReadF16(const std::byte* bytes) {
  F16 value;
  std::memcpy(&value.bits, bytes, sizeof(value.bits));
  return ToFloat(value);
}

void DequantizeF32(const std::byte* blocks, int64_t num_blocks, float* out) {
  std::memcpy(out, blocks, static_cast<size_t>(num_blocks) * sizeof(float));
}

void DequantizeF16(const std::byte* blocks, int64_t num_blocks, float* out) {
  for (int64_t i = 0; i < num_blocks; ++i) out[i] = ReadF16(blocks + 2 * i);
}

void DequantizeBf16(const std::byte* blocks, int64_t num_blocks, float* out) {
  for (int64_t i = 0; i < num_blocks; ++i) {
    Bf16 value;
    std::memcpy(&value.bits, blocks + 2 * i, sizeof(value.bits));
    out[i] = ToFloat(value);
  }
}

// MXFP4 (OCP Microscaling Formats 1.0): a power of two, and 32 numbers of four bits: a sign, two
// bits of exponent, one of mantissa. The table has twice the numbers, so the scale is half of
// 2^(e - 127).
constexpr int64_t kMxfp4Elements = 32;
constexpr int8_t kMxfp4Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

float HalfOfPowerOfTwo(uint8_t e) {
  // The two smallest scales are subnormal.
  const uint32_t bits = e < 2 ? uint32_t{0x00200000} << e : uint32_t{e - 1u} << 23;
  return std::bit_cast<float>(bits);
}

void DequantizeMxfp4(const std::byte* blocks, int64_t num_blocks, float* out) {
  for (int64_t block = 0; block < num_blocks; ++block) {
    const float scale = HalfOfPowerOfTwo(std::to_integer<uint8_t>(blocks[0]));
    for (int64_t i = 0; i < kMxfp4Elements / 2; ++i) {
      const int pair = std::to_integer<int>(blocks[1 + i]);
      out[i] = scale * static_cast<float>(kMxfp4Doubled[pair & 15]);
      out[i + kMxfp4Elements / 2] = scale * static_cast<float>(kMxfp4Doubled[pair >> 4]);
    }
    blocks += 1 + kMxfp4Elements / 2;
    out += kMxfp4Elements;
  }
}

// A type whose blocks can stay packed.
template <BlockFormat format>
constexpr GgufType Blocks(uint32_t id) {
  constexpr const BlockTraits& kTraits = TraitsOf(format);
  return {id,
          kTraits.name.data(),
          kTraits.file_elements,
          kTraits.file_bytes,
          [](const std::byte* blocks, int64_t num_blocks, float* out) {
            DequantizeBlocks(format, blocks, num_blocks, out);
          },
          format};
}

constexpr GgufType kTypes[] = {
    {0, "F32", 1, 4, DequantizeF32, std::nullopt},
    {1, "F16", 1, 2, DequantizeF16, std::nullopt},
    Blocks<BlockFormat::kQ4_0>(2),
    Blocks<BlockFormat::kQ4_1>(3),
    Blocks<BlockFormat::kQ5_0>(6),
    Blocks<BlockFormat::kQ5_1>(7),
    Blocks<BlockFormat::kQ8_0>(8),
    Blocks<BlockFormat::kQ4K>(12),
    Blocks<BlockFormat::kQ5K>(13),
    Blocks<BlockFormat::kQ6K>(14),
    Blocks<BlockFormat::kIq4Nl>(20),
    Blocks<BlockFormat::kIq4Xs>(23),
    {30, "BF16", 1, 2, DequantizeBf16, std::nullopt},
    {39, "MXFP4", kMxfp4Elements, 1 + kMxfp4Elements / 2, DequantizeMxfp4, std::nullopt},
};

// The names of the format's other types, for messages.
struct OtherType {
  uint32_t id;
  const char* name;
};
constexpr OtherType kOtherTypes[] = {
    {9, "Q8_1"},     {10, "Q2_K"},  {11, "Q3_K"},  {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"},
    {18, "IQ3_XXS"}, {19, "IQ1_S"}, {21, "IQ3_S"}, {22, "IQ2_S"}, {24, "I8"},      {25, "I16"},
    {26, "I32"},     {27, "I64"},   {28, "F64"},   {29, "IQ1_M"}, {34, "TQ1_0"},   {35, "TQ2_0"},
};

}  // namespace

std::span<const GgufType> GgufTypes() { return kTypes; }

const GgufType* FindGgufType(uint32_t id) {
  const auto* found = std::ranges::find(kTypes, id, &GgufType::id);
  return found == std::end(kTypes) ? nullptr : found;
}

std::string GgufTypeName(uint32_t id) {
  const GgufType* type = FindGgufType(id);
  const auto* other = std::ranges::find(kOtherTypes, id, &OtherType::id);
  const char* name = type != nullptr                  ? type->name
                     : other != std::end(kOtherTypes) ? other->name
                                                      : "unknown";
  return "type " + std::to_string(id) + " (" + name + ")";
}

}  // namespace skein
