#include "io/gguf_types.h"

#include <algorithm>
#include <cstring>

#include "base/dtype.h"

namespace skein {
namespace {

constexpr int64_t kBlock = 32;  // elements of a block of Q4_0, Q4_1 and Q8_0

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

// A block is an f16 scale and 32 int8: scale * q.
void DequantizeQ8_0(const std::byte* blocks, int64_t num_blocks, float* out) {
  for (int64_t block = 0; block < num_blocks; ++block) {
    const float scale = ReadF16(blocks);
    for (int64_t i = 0; i < kBlock; ++i) {
      out[i] = static_cast<float>(static_cast<int8_t>(blocks[2 + i])) * scale;
    }
    blocks += 2 + kBlock;
    out += kBlock;
  }
}

// The low halves of 16 bytes are the elements 0..15, the high halves the elements 16..31.
int LowNibble(std::byte pair) { return std::to_integer<int>(pair) & 15; }
int HighNibble(std::byte pair) { return std::to_integer<int>(pair) >> 4; }

// A block is an f16 scale and 32 halves of bytes: scale * (q - 8).
void DequantizeQ4_0(const std::byte* blocks, int64_t num_blocks, float* out) {
  for (int64_t block = 0; block < num_blocks; ++block) {
    const float scale = ReadF16(blocks);
    for (int64_t i = 0; i < kBlock / 2; ++i) {
      out[i] = scale * static_cast<float>(LowNibble(blocks[2 + i]) - 8);
      out[i + kBlock / 2] = scale * static_cast<float>(HighNibble(blocks[2 + i]) - 8);
    }
    blocks += 2 + kBlock / 2;
    out += kBlock;
  }
}

// A block is an f16 scale, an f16 minimum and 32 halves of bytes: scale * q + minimum.
void DequantizeQ4_1(const std::byte* blocks, int64_t num_blocks, float* out) {
  for (int64_t block = 0; block < num_blocks; ++block) {
    const float scale = ReadF16(blocks), minimum = ReadF16(blocks + 2);
    for (int64_t i = 0; i < kBlock / 2; ++i) {
      out[i] = scale * static_cast<float>(LowNibble(blocks[4 + i])) + minimum;
      out[i + kBlock / 2] = scale * static_cast<float>(HighNibble(blocks[4 + i])) + minimum;
    }
    blocks += 4 + kBlock / 2;
    out += kBlock;
  }
}

constexpr GgufType kTypes[] = {
    {0, "F32", 1, 4, DequantizeF32},
    {1, "F16", 1, 2, DequantizeF16},
    {2, "Q4_0", kBlock, 2 + kBlock / 2, DequantizeQ4_0},
    {3, "Q4_1", kBlock, 4 + kBlock / 2, DequantizeQ4_1},
    {8, "Q8_0", kBlock, 2 + kBlock, DequantizeQ8_0},
    {30, "BF16", 1, 2, DequantizeBf16},
};

// The names of the format's other types, for messages.
struct OtherType {
  uint32_t id;
  const char* name;
};
constexpr OtherType kOtherTypes[] = {
    {6, "Q5_0"},   {7, "Q5_1"},    {9, "Q8_1"},   {10, "Q2_K"},    {11, "Q3_K"},   {12, "Q4_K"},
    {13, "Q5_K"},  {14, "Q6_K"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"},
    {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"}, {24, "I8"},
    {25, "I16"},   {26, "I32"},    {27, "I64"},   {28, "F64"},     {29, "IQ1_M"},  {34, "TQ1_0"},
    {35, "TQ2_0"}, {39, "MXFP4"},
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
