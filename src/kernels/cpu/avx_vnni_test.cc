// Tests vpdpbusd: the processor, or its emulator, by the definition, and that the kernels use it.

#include <gtest/gtest.h>
#include <immintrin.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/cpu_kernels.h"
#include "testing/isa_emulation.h"
#include "testing/random_values.h"

namespace skein {
namespace {

using testing::IsaEmulation;
using testing::RandomValues;
using testing::Range;
using testing::ScopedAvxVnniEmulation;

struct Operands {
  int32_t sums[8];
  uint8_t unsigned_bytes[32];
  int8_t signed_bytes[32];
};

#pragma GCC push_options
#pragma GCC target("avx2")

template <bool kFromMemory>
void RunInstruction(Operands& operands) {
  const auto& memory = *reinterpret_cast<const __m256i_u*>(operands.signed_bytes);
  __m256i sums = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(operands.sums));
  const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(operands.unsigned_bytes));
  if constexpr (kFromMemory) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(x), "m"(memory));
  } else {
    const __m256i y = _mm256_loadu_si256(&memory);
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(x), "x"(y));
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(operands.sums), sums);
}

#pragma GCC pop_options

TEST(AvxVnniTest, TheInstructionAddsProductsOfUnsignedAndSignedBytes) {
  if (!CpuHas(Isa::kAvx2)) GTEST_SKIP() << "needs AVX2";
  const IsaEmulation emulation(Isa::kAvxVnni);
  RandomValues random;
  for (int i = 0; i < 2000; ++i) {
    Operands operands;
    for (int32_t& sum : operands.sums) {
      sum =
          random.Integer(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
    }
    for (uint8_t& x : operands.unsigned_bytes) x = static_cast<uint8_t>(random.Integer(0, 255));
    for (int8_t& x : operands.signed_bytes) x = static_cast<int8_t>(random.Integer(-128, 127));
    int32_t expected[8];
    for (int j = 0; j < 8; ++j) {
      auto sum = static_cast<uint32_t>(operands.sums[j]);  // wraps around
      for (int k = 4 * j; k < 4 * j + 4; ++k) {
        sum += static_cast<uint32_t>(operands.unsigned_bytes[k] * operands.signed_bytes[k]);
      }
      expected[j] = static_cast<int32_t>(sum);
    }
    i % 2 == 0 ? RunInstruction<false>(operands) : RunInstruction<true>(operands);
    ASSERT_EQ(std::memcmp(operands.sums, expected, sizeof(expected)), 0) << i;
  }
}

// The instructions that a product executes, where they are emulated.
int64_t InstructionsOf(const GemmCall& call) {
  const int64_t before = ScopedAvxVnniEmulation::num_executed();
  MakeCpuKernels(Isa::kAvxVnni)->Gemm(call);
  return ScopedAvxVnniEmulation::num_executed() - before;
}

// One for each eight columns and four terms, and for each row.
TEST(AvxVnniTest, ProductsOfInt8UseTheInstruction) {
  const IsaEmulation emulation(Isa::kAvxVnni);
  if (!emulation.active()) GTEST_SKIP() << "instructions are counted where they are emulated";
  if (!CpuHas(Isa::kAvx2)) GTEST_SKIP() << "needs AVX2";
  constexpr int32_t kRows = 7, kColumns = 32, kTerms = 64;
  RandomValues random;
  PackedWeight w(kColumns, kTerms, DType::kInt8);
  w.PackRows(0, kColumns,
             random.Floats(size_t{kColumns} * kTerms, DType::kF32, Range::kPlain).data(),
             DType::kF32);
  const std::vector<int8_t> rows(size_t{kRows} * kTerms, 3);
  const std::vector<float> scales(kRows, 1.0f);
  std::vector<float> out(size_t{kRows} * kColumns);
  EXPECT_EQ(InstructionsOf({.a = rows.data(),
                            .lda = kTerms,
                            .a_scales = scales.data(),
                            .m = kRows,
                            .w = &w,
                            .n_end = kColumns,
                            .out = out.data(),
                            .ldo = kColumns}),
            int64_t{kRows} * (kColumns / 8) * (kTerms / 4));
}

// The same in each block of 32 terms: a row alone, and several that share a panel's values.
TEST(AvxVnniTest, ProductsOfBlocksUseTheInstruction) {
  const IsaEmulation emulation(Isa::kAvxVnni);
  if (!emulation.active()) GTEST_SKIP() << "instructions are counted where they are emulated";
  if (!CpuHas(Isa::kAvx2)) GTEST_SKIP() << "needs AVX2";
  constexpr int32_t kColumns = 16, kTerms = 64, kBlocks = kTerms / kBlockTerms;
  for (const BlockFormat format : {BlockFormat::kQ4_0, BlockFormat::kQ8_0}) {
    PackedWeight w(kColumns, kTerms, std::vector<BlockFormat>(1, format));
    const std::vector<std::byte> file(size_t{kColumns} * kBlocks * TraitsOf(format).file_bytes);
    w.PackBlocks(0, kColumns, file.data(), format);
    for (const int32_t rows : {1, 5}) {
      const std::vector<int8_t> a(size_t(rows) * kTerms, 3);
      const std::vector<RowBlock> blocks(size_t(rows) * kBlocks);
      std::vector<float> out(size_t(rows) * kColumns);
      EXPECT_EQ(InstructionsOf({.a = a.data(),
                                .lda = kTerms,
                                .a_blocks = blocks.data(),
                                .m = rows,
                                .w = &w,
                                .n_end = kColumns,
                                .out = out.data(),
                                .ldo = kColumns}),
                int64_t{rows} * (kColumns / 8) * (kTerms / 4))
          << TraitsOf(format).name << " " << rows;
    }
  }
}

// Attention over keys and values in int8 has AVX2's bits, for a row alone and for several.
TEST(AvxVnniTest, AttentionOfInt8UsesTheInstruction) {
  const IsaEmulation emulation(Isa::kAvxVnni);
  if (!CpuHas(Isa::kAvx2)) GTEST_SKIP() << "needs AVX2";
  constexpr int32_t kKeys = 40, kDim = 64, kMostRows = 7;
  const KvLayout layout = {DType::kInt8, 1, 2, 1, kDim};
  AlignedBuffer memory(layout.total_bytes());
  RandomValues random;
  const std::vector<float> scales = {0.01f, 0.02f};
  for (int32_t key = 0; key < kKeys; ++key) {
    std::vector<int8_t> k(kDim), v(kDim);
    for (int8_t& x : k) x = static_cast<int8_t>(random.Integer(-127, 127));
    for (int8_t& x : v) x = static_cast<int8_t>(random.Integer(-127, 127));
    std::byte* const base = memory.data() + layout.Offset(0, key / kKvBlockTokens, 0);
    layout.StoreInt8K(base, key % kKvBlockTokens, k.data(), scales.data());
    layout.StoreInt8V(base, key % kKvBlockTokens, v.data(), 0.01f * key);
  }
  const std::vector<float> q = random.Floats(size_t{kMostRows} * kDim, DType::kF32, Range::kPlain);
  const int32_t table[] = {0, 1};
  for (const int32_t num_rows : {1, kMostRows}) {
    const auto attend = [&](Isa isa) {
      std::vector<float> out(size_t{kMostRows} * kDim);
      std::vector<AttentionRow> rows;
      for (int32_t r = 0; r < num_rows; ++r) {
        rows.push_back({&q[r * kDim], &out[r * kDim], kKeys - r, 2, table});
      }
      MakeCpuKernels(isa)->Attention(
          {.rows = rows, .kv = memory.data(), .layout = &layout, .scale = 0.1f});
      return out;
    };
    const int64_t before = ScopedAvxVnniEmulation::num_executed();
    const std::vector<float> found = attend(Isa::kAvxVnni);
    const bool executed = ScopedAvxVnniEmulation::num_executed() > before;
    EXPECT_EQ(executed, emulation.active());
    EXPECT_EQ(found, attend(Isa::kAvx2)) << num_rows;
    EXPECT_NE(found[0], 0.0f);
  }
}

}  // namespace
}  // namespace skein
