// Tests the matrix unit's instructions as amx_tile.h wraps them, and the kernels that use them.
// Runs on the processor if it has the unit, otherwise on the emulator.

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "kernels/cpu/amx_tile.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/cpu_kernels.h"
#include "testing/amx_emulator.h"
#include "testing/isa_emulation.h"
#include "testing/random_values.h"

namespace skein {
namespace {

using testing::EmulatedTiles;
using testing::RandomValues;
using testing::Range;
using testing::ScopedAmxEmulation;

class AmxTest : public ::testing::Test {
 protected:
  const testing::IsaEmulation emulation_{Isa::kAmx};
  RandomValues random_;
};

struct TileProblem {
  amx::TileConfig config;
  std::vector<float> c;  // [rows, 20]
  std::vector<Bf16> a;   // [rows, 40]
  std::vector<Bf16> b;   // [16, 36]
};

TileProblem RandomProblem(RandomValues& random, int rows, int pairs, int columns) {
  TileProblem problem;
  const int tile_rows[3] = {rows, rows, pairs};
  const int row_bytes[3] = {4 * columns, 4 * pairs, 4 * columns};
  for (int t = 0; t < 3; ++t) {
    problem.config.rows[t] = static_cast<uint8_t>(tile_rows[t]);
    problem.config.row_bytes[t] = static_cast<uint16_t>(row_bytes[t]);
  }
  problem.c = random.Floats(size_t{16} * 20, DType::kF32, Range::kExtreme);
  for (float x : random.Floats(size_t{16} * 40, DType::kBf16, Range::kExtreme)) {
    problem.a.push_back(ToBf16(x));
  }
  for (float x : random.Floats(size_t{16} * 36, DType::kBf16, Range::kExtreme)) {
    problem.b.push_back(ToBf16(x));
  }
  return problem;
}

std::vector<float> RunInstructions(const TileProblem& problem) {
  std::vector<float> out(problem.c);
  amx::LoadTileConfig(problem.config);
  amx::LoadTile<0>(problem.c.data(), 20 * 4);
  amx::LoadTile<1>(problem.a.data(), 40 * 2);
  amx::LoadTile<2>(problem.b.data(), 36 * 2);
  amx::DotTiles<0, 1, 2>();
  amx::StoreTile<0>(out.data(), 20 * 4);
  amx::ReleaseTiles();
  return out;
}

std::vector<float> RunSoftware(const TileProblem& problem) {
  std::vector<float> out(problem.c);
  const auto bytes = [](const auto& values) {
    return reinterpret_cast<const uint8_t*>(values.data());
  };
  EmulatedTiles tiles;
  EXPECT_TRUE(tiles.LoadConfig(reinterpret_cast<const uint8_t*>(&problem.config)));
  EXPECT_TRUE(tiles.Load(0, bytes(problem.c), 20 * 4));
  EXPECT_TRUE(tiles.Load(1, bytes(problem.a), 40 * 2));
  EXPECT_TRUE(tiles.Load(2, bytes(problem.b), 36 * 2));
  EXPECT_TRUE(tiles.DotBf16(0, 1, 2));
  EXPECT_TRUE(tiles.Store(0, reinterpret_cast<uint8_t*>(out.data()), 20 * 4));
  return out;
}

// On a machine with the unit, this test compares the emulator with the unit. Elsewhere it compares
// decoded instructions with direct calls of the same operations.
TEST_F(AmxTest, InstructionsEqualTheEmulator) {
  for (int i = 0; i < 200; ++i) {
    const TileProblem problem = RandomProblem(random_, random_.Integer(1, 16),
                                              random_.Integer(1, 16), random_.Integer(1, 16));
    EXPECT_TRUE(testing::SameBits(RunInstructions(problem), RunSoftware(problem)));
  }
}

// Cases computed by hand: rows of one pair, and denormals.
TEST(EmulatedTilesTest, SumsEvenAndOddApartAndFlushesDenormals) {
  amx::TileConfig config;
  for (int t = 0; t < 3; ++t) {
    config.rows[t] = t == 2 ? 2 : 1;
    config.row_bytes[t] = t == 1 ? 8 : 4;
  }
  EmulatedTiles tiles;
  ASSERT_TRUE(tiles.LoadConfig(reinterpret_cast<const uint8_t*>(&config)));
  const auto dot = [&](float c, std::vector<float> a, std::vector<float> b) {
    Bf16 a_bits[4], b_bits[4];
    for (int i = 0; i < 4; ++i) {
      a_bits[i] = ToBf16(a[i]);
      b_bits[i] = ToBf16(b[i]);
    }
    EXPECT_TRUE(tiles.Load(0, reinterpret_cast<uint8_t*>(&c), 4));
    EXPECT_TRUE(tiles.Load(1, reinterpret_cast<uint8_t*>(a_bits), 8));
    EXPECT_TRUE(tiles.Load(2, reinterpret_cast<uint8_t*>(b_bits), 4));
    EXPECT_TRUE(tiles.DotBf16(0, 1, 2));
    EXPECT_TRUE(tiles.Store(0, reinterpret_cast<uint8_t*>(&c), 4));
    return c;
  };
  EXPECT_EQ(dot(1, {2, 3, 4, 5}, {8, 64, 512, 4096}), 1 + 16 + 192 + 2048 + 20480);
  // One chain would lose the 1 in 2^30 + 1. With separate chains, the odd elements cancel first.
  EXPECT_EQ(dot(0, {1, 0x1p30f, 0, -0x1p30f}, {1, 1, 1, 1}), 1.0f);
  EXPECT_EQ(dot(0, {1, 0x1p30f, 0, 0}, {1, 1, 1, 1}), 0x1p30f);
  EXPECT_EQ(dot(0, {0x1p-130f, 0, 0, 0}, {0x1p20f, 1, 1, 1}), 0.0f);  // denormal input
  EXPECT_EQ(dot(0, {0x1p-70f, 0, 0, 0}, {0x1p-70f, 1, 1, 1}), 0.0f);  // denormal result
}

TEST(EmulatedTilesTest, RefusesWhatTheManualRefuses) {
  EmulatedTiles tiles;
  EXPECT_FALSE(tiles.Zero(0));  // not configured
  amx::TileConfig config;
  config.rows[0] = 17;
  config.row_bytes[0] = 64;
  EXPECT_FALSE(tiles.LoadConfig(reinterpret_cast<const uint8_t*>(&config)));
  config.rows[0] = 16;
  EXPECT_TRUE(tiles.LoadConfig(reinterpret_cast<const uint8_t*>(&config)));
  EXPECT_TRUE(tiles.Zero(0));
  EXPECT_FALSE(tiles.Zero(1));  // has no rows
}

// A product of 17 rows and 5 panels with an incomplete tile of k, by the AMX kernels on this
// machine or on the emulator.
std::vector<float> Product(const Kernels& kernels, RandomValues random) {
  const int32_t m = 17, n = 80, k = 100;
  PackedWeight w(n, k, DType::kBf16);
  w.PackRows(0, n, random.Floats(size_t{80} * 100, DType::kBf16, Range::kPlain).data(),
             DType::kF32);
  const testing::TypedArray a(random.Floats(size_t{17} * 100, DType::kBf16, Range::kPlain),
                              DType::kBf16);
  std::vector<float> out(size_t{17} * 80);
  kernels.Gemm({.a = a.data(), .lda = k, .m = m, .w = &w, .n_end = n, .out = out.data(), .ldo = n});
  return out;
}

// The forced instruction set really runs: tile instructions are executed, and the bits are those of
// the set's class.
TEST_F(AmxTest, ProductsRunOnTheMatrixUnit) {
  if (!CpuHas(Isa::kAvx512)) GTEST_SKIP() << "needs AVX-512";

  const auto kernels = MakeCpuKernels(Isa::kAmx);
  EXPECT_EQ(kernels->isa(), Isa::kAmx);
  const int64_t before = ScopedAmxEmulation::num_executed();
  const std::vector<float> product = Product(*kernels, random_);
  if (emulation_.active()) {
    EXPECT_GT(ScopedAmxEmulation::num_executed(), before);
  }
  EXPECT_FALSE(testing::SameBits(product, Product(*MakeCpuKernels(Isa::kAvx512), random_)));
}

TEST_F(AmxTest, ThreadsHaveTilesOfTheirOwn) {
  if (!CpuHas(Isa::kAvx512)) GTEST_SKIP() << "needs AVX-512";
  const auto kernels = MakeCpuKernels(Isa::kAmx);
  std::vector<std::vector<float>> products(3);
  std::vector<std::thread> threads;
  for (auto& product : products) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) product = Product(*kernels, random_);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(testing::SameBits(products[0], products[1]));
  EXPECT_TRUE(testing::SameBits(products[0], products[2]));
}

}  // namespace
}  // namespace skein
