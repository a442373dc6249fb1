#include "io/gguf_types.h"

#include <algorithm>
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
    Blocks<BlockFormat::kMxfp4>(39),
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
